// The loop over time of an LSTM for stacked replicas, in one launch: `kernels/cluster_lstm.py` says what it computes.
//
// A cluster of HIDDEN / 32 blocks runs the loop for one replica and ROWS = 16 TILES of its sequences. Each block owns 32
// hidden units; its share of the recurrent weights stays in registers from the first position to the last, laid out as
// operands of the tensor cores. After each position the blocks of a cluster write what the others need into their shared
// memory and meet at the cluster's barrier. Products are TF32 with sums in fp32; everything else is fp32.
//
// Of its warp's eight rows and four units of a product, a thread holds row `lane / 4` (and the one eight below) and unit
// `lane % 4`, all four gates: so the cell is computed where the product ends, and the cells never leave their registers.
//
// To arrive at a barrier is to wait for all reads and writes begun before it. Those of the device's memory, which nobody
// in the cluster waits for, are therefore begun between arriving and waiting.

#ifndef EMULATED
#define BLOCK_MEMORY extern __shared__ float memory[]

__device__ inline float rounded(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

// c += a b for a 16×8 tile a, an 8×8 tile b and a 16×8 tile c, spread over a warp as PTX prescribes
__device__ inline void multiply(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

__device__ inline unsigned address(float *place, int block) {
    unsigned found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(found) : "r"((unsigned)__cvta_generic_to_shared(place)), "r"(block));
    return found;
}

// Writes to the same place of another block's shared memory
__device__ inline void put(float *place, int block, float4 x) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};"
                 :: "r"(address(place, block)), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
}

__device__ inline void put(float *place, int block, float x, float y) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1,%2};"
                 :: "r"(address(place, block)), "f"(x), "f"(y) : "memory");
}

// All threads of the cluster meet: what was written before they arrive is seen after they have waited
__device__ inline void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__device__ inline float from_lane(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
#endif

constexpr int BLOCKS = HIDDEN / 32, ROWS = 16 * TILES, THREADS = 256;
constexpr int WIDE = HIDDEN + 16, NARROW = 36, GATES = 4 * 32 + 4;  // of rows in shared memory: no two read at once in one bank
typedef long long Index;

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ inline float squash(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// Where a thread works
struct Place {
    int block, warp, lane, group, quad, replica, first, unit, local, batch;
    __device__ Place(int batch) : batch(batch) {
        int slabs = (batch + ROWS - 1) / ROWS;
        block = blockIdx.x, replica = blockIdx.y / slabs, first = blockIdx.y % slabs * ROWS;
        warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4;
        local = 4 * warp + quad, unit = 32 * block + local;
    }
    __device__ int row(int pair) const { return pair / 2 * 16 + pair % 2 * 8 + group; }
    __device__ bool real(int pair) const { return first + row(pair) < batch; }
    __device__ Index sequence(int pair) const { return (Index)replica * batch + first + row(pair); }
};

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 1) lstm_forward(
    const float *inputs, const Index *rows, const float *weight, const float *start_h, const float *start_c,
    float *states, float *cells, float *gates, int batch, int length, int table_rows) {
    BLOCK_MEMORY;  // the states before this position and after it: [2, ROWS, WIDE]
    const Place me(batch);
    constexpr int PAIRS = 2 * TILES, DEEP = HIDDEN / 8;

    // A product's sum may be taken in any order: of 16 states a thread takes four neighbours, two for each of two products
    auto place = [&](int k) { return k / 2 * 16 + 4 * me.quad + k % 2 * 2; };
    float b[2][DEEP][2];  // columns 2u and 2u + 1 of the first tile are the gates i and f of unit u, of the second g and o
    #pragma unroll
    for (int half = 0; half < 2; half++) {
        int gate = 2 * half + me.group % 2;
        const float *row = weight + ((Index)me.replica * 4 * HIDDEN + gate * HIDDEN + 32 * me.block + 4 * me.warp +
                                     me.group / 2) * HIDDEN;
        #pragma unroll
        for (int k = 0; k < DEEP; k++) {
            b[half][k][0] = rounded(row[place(k)]);
            b[half][k][1] = rounded(row[place(k) + 1]);
        }
    }
    for (int place = threadIdx.x; place < ROWS * HIDDEN; place += THREADS) {
        int row = place / HIDDEN, unit = place % HIDDEN;
        bool real = me.first + row < batch;
        Index from = ((Index)me.replica * batch + me.first + row) * HIDDEN + unit;
        memory[row * WIDE + unit] = real ? rounded(start_h[from]) : 0.0f;
    }
    float cell[PAIRS], given[PAIRS][4];
    for (int pair = 0; pair < PAIRS; pair++)
        cell[pair] = me.real(pair) ? start_c[me.sequence(pair) * HIDDEN + me.unit] : 0.0f;
    auto load = [&](int time) {
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            Index place = me.sequence(pair) * length + time;
            if (me.real(pair) && rows) place = (Index)me.replica * table_rows + rows[place];
            #pragma unroll
            for (int gate = 0; gate < 4; gate++)
                given[pair][gate] = me.real(pair) ? inputs[place * 4 * HIDDEN + gate * HIDDEN + me.unit] : 0.0f;
        }
    };
    load(0);
    arrive(), wait();

    for (int time = 0; time < length; time++) {
        const float *before = memory + time % 2 * ROWS * WIDE;
        float *after = memory + (time + 1) % 2 * ROWS * WIDE;
        float sum[TILES][2][2][4] = {};  // by tile, half of the gates, and even and odd k: independent chains
        #pragma unroll
        for (int k = 0; k < DEEP; k += 2)
            #pragma unroll
            for (int tile = 0; tile < TILES; tile++) {
                const float *row = before + (16 * tile + me.group) * WIDE + place(k);
                const float4 upper = *(const float4 *)row, lower = *(const float4 *)(row + 8 * WIDE);
                const float even[4] = {upper.x, lower.x, upper.y, lower.y}, odd[4] = {upper.z, lower.z, upper.w, lower.w};
                #pragma unroll
                for (int half = 0; half < 2; half++) {
                    multiply(sum[tile][half][0], even, b[half][k]);
                    multiply(sum[tile][half][1], odd, b[half][k + 1]);
                }
            }
        float gate[PAIRS][4], state[PAIRS];
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            #pragma unroll
            for (int part = 0; part < 4; part++) {
                int at = pair % 2 * 2 + part % 2;
                float x = sum[pair / 2][part / 2][0][at] + sum[pair / 2][part / 2][1][at] + given[pair][part];
                gate[pair][part] = part == 2 ? squash(x) : sigmoid(x);
            }
            cell[pair] = gate[pair][1] * cell[pair] + gate[pair][0] * gate[pair][2];
            state[pair] = gate[pair][3] * squash(cell[pair]);
            float mine = rounded(state[pair]);
            int quad = me.lane - me.quad;
            float4 four;
            four.x = from_lane(mine, quad), four.y = from_lane(mine, quad + 1);
            four.z = from_lane(mine, quad + 2), four.w = from_lane(mine, quad + 3);
            if (time + 1 < length)
                for (int block = me.quad; block < BLOCKS; block += 4)
                    put(after + me.row(pair) * WIDE + 32 * me.block + 4 * me.warp, block, four);
        }
        if (time + 1 < length) arrive();
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++)
            if (me.real(pair)) {
                Index at = me.sequence(pair) * length + time;
                #pragma unroll
                for (int part = 0; part < 4; part++)
                    gates[at * 4 * HIDDEN + part * HIDDEN + me.unit] = gate[pair][part];
                cells[at * HIDDEN + me.unit] = cell[pair];
                states[at * HIDDEN + me.unit] = state[pair];
            }
        if (time + 1 < length) {
            load(time + 1);
            wait();
        }
    }
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 1) lstm_backward(
    const float *weight, const float *gates, const float *cells, const float *start_c, const float *d_states,
    const float *d_last, const float *d_cell, float *d_gates, float *d_hidden, float *d_cells, int batch, int length) {
    BLOCK_MEMORY;  // what the blocks found for the states of this one: [2, BLOCKS, ROWS, NARROW]; its gates: [ROWS, GATES]
    const Place me(batch);
    constexpr int PAIRS = 2 * TILES, DEEP = 16, ACROSS = HIDDEN / 64;
    float *own = memory + 2 * BLOCKS * ROWS * NARROW;

    int column = me.warp * (HIDDEN / 8);  // the first hidden unit of the warp's products; they all belong to one block
    float b[ACROSS][DEEP][2];
    #pragma unroll
    for (int k = 0; k < DEEP; k++) {
        const float *row = weight + ((Index)me.replica * 4 * HIDDEN + k / 4 * HIDDEN + 32 * me.block + k % 4 * 8 +
                                     me.quad) * HIDDEN + column + me.group;
        #pragma unroll
        for (int n = 0; n < ACROSS; n++) {
            b[n][k][0] = rounded(row[8 * n]);
            b[n][k][1] = rounded(row[4 * HIDDEN + 8 * n]);
        }
    }
    float from_next[PAIRS], carried[PAIRS], cell[PAIRS], before[PAIRS], kept[PAIRS][4], given[PAIRS];
    for (int pair = 0; pair < PAIRS; pair++) {
        Index place = me.sequence(pair) * HIDDEN + me.unit;
        from_next[pair] = me.real(pair) ? d_last[place] : 0.0f;
        carried[pair] = me.real(pair) ? d_cell[place] : 0.0f;
        before[pair] = me.real(pair) ? cells[(me.sequence(pair) * length + length - 1) * HIDDEN + me.unit] : 0.0f;
    }
    auto load = [&](int time) {
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            bool real = me.real(pair);
            Index place = me.sequence(pair) * length + time;
            #pragma unroll
            for (int gate = 0; gate < 4; gate++)
                kept[pair][gate] = real ? gates[place * 4 * HIDDEN + gate * HIDDEN + me.unit] : 0.0f;
            given[pair] = real ? d_states[place * HIDDEN + me.unit] : 0.0f;
            cell[pair] = before[pair];
            const float *earlier = time ? cells + (place - 1) * HIDDEN : start_c + me.sequence(pair) * HIDDEN;
            before[pair] = real ? earlier[me.unit] : 0.0f;
        }
    };
    load(length - 1);
    arrive(), wait();

    for (int time = length - 1; time >= 0; time--) {
        float d[PAIRS][4];
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            float i = kept[pair][0], f = kept[pair][1], g = kept[pair][2], o = kept[pair][3];
            float squashed = squash(cell[pair]);
            float dh = given[pair] + from_next[pair], dc = carried[pair] + dh * o * (1.0f - squashed * squashed);
            d[pair][0] = dc * g * i * (1.0f - i), d[pair][1] = dc * before[pair] * f * (1.0f - f);
            d[pair][2] = dc * i * (1.0f - g * g), d[pair][3] = dh * squashed * o * (1.0f - o);
            carried[pair] = dc * f;
            #pragma unroll
            for (int gate = 0; gate < 4; gate++)
                own[me.row(pair) * GATES + 32 * gate + me.local] = rounded(d[pair][gate]);
        }
        __syncthreads();
        float sum[TILES][ACROSS][4] = {};
        #pragma unroll
        for (int k = 0; k < DEEP; k++)
            #pragma unroll
            for (int tile = 0; tile < TILES; tile++) {
                const float *row = own + (16 * tile + me.group) * GATES + 8 * k + me.quad;
                float a[4] = {row[0], row[8 * GATES], row[4], row[8 * GATES + 4]};
                #pragma unroll
                for (int n = 0; n < ACROSS; n++) multiply(sum[tile][n], a, b[n][k]);
            }
        float *found = memory + time % 2 * BLOCKS * ROWS * NARROW;
        #pragma unroll
        for (int tile = 0; tile < TILES; tile++)
            #pragma unroll
            for (int n = 0; n < ACROSS; n++) {
                float *place = found + (me.block * ROWS + 16 * tile + me.group) * NARROW + column % 32 + 8 * n + 2 * me.quad;
                put(place, column / 32, sum[tile][n][0], sum[tile][n][1]);
                put(place + 8 * NARROW, column / 32, sum[tile][n][2], sum[tile][n][3]);
            }
        arrive();
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++)
            #pragma unroll
            for (int gate = 0; gate < 4; gate++)
                if (me.real(pair))
                    d_gates[(me.sequence(pair) * length + time) * 4 * HIDDEN + gate * HIDDEN + me.unit] = d[pair][gate];
        if (time) load(time - 1);
        wait();
        #pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            from_next[pair] = 0.0f;
            #pragma unroll
            for (int block = 0; block < BLOCKS; block++)
                from_next[pair] += found[(block * ROWS + me.row(pair)) * NARROW + me.local];
        }
    }
    for (int pair = 0; pair < PAIRS; pair++)
        if (me.real(pair)) {
            d_hidden[me.sequence(pair) * HIDDEN + me.unit] = from_next[pair];
            d_cells[me.sequence(pair) * HIDDEN + me.unit] = carried[pair];
        }
}
