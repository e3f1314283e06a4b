// The loop over time of an LSTM for stacked replicas, in one launch: `kernels/cluster_lstm.py` says what it computes.
//
// A cluster of HIDDEN / 32 blocks runs the loop for one replica and ROWS = 16 TILES of its sequences. Each block owns
// 32 hidden units; its share of the recurrent weights stays in registers from the first position to the last, laid out
// as operands of the tensor cores. After each position the blocks of a cluster put what the others need into their
// shared memory. Products are TF32 with sums in fp32; everything else is fp32.
//
// Of its warp's eight rows and four units of a product, a thread holds row `lane / 4` (and the one eight below) and
// unit `lane % 4`, all four gates: so the cell is computed where the product ends, and never leaves its register.
//
// The cluster has no barrier inside the loop: it would wait for the device's memory too. What is put counts its bytes
// at a signal of the block that gets it, and who reads awaits the signal. Each tile of 16 rows has its own, so that one
// is computed while the other is on its way. There are two buffers for what is put, in turn. Nobody puts into one that
// is still read: to put at one position a warp needs what all warps put at the position before, after they had read.
//
// The device's memory is read and written in whole rows of the block's units, by way of a stage in shared memory, where
// what was computed at a position replaces what it was computed from. Again there are two: while one position is
// computed, the rows of the next come in. A warp moves the four gates of a row at a time, and two single values of two.

#ifndef EMULATED
#define BLOCK_MEMORY extern __shared__ __align__(128) float memory[]

__device__ inline float rounded(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

// Exactly 0 for −10⁴ and 1 for 10⁴
__device__ inline float sigmoid(float x) {
    float power, found;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.4426950409f * x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(1.0f + power));
    return found;
}

// c += a b for a 16×8 tile a, an 8×8 tile b and a 16×8 tile c, spread over a warp as PTX prescribes
__device__ inline void multiply(float (&c)[4], float4 a, const float (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a.x)), "r"(__float_as_uint(a.y)), "r"(__float_as_uint(a.z)),
          "r"(__float_as_uint(a.w)), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

__device__ inline float from_lane(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }

// All threads of the cluster meet: what was written before is seen after
__device__ inline void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ inline unsigned address(const float *place) { return (unsigned)__cvta_generic_to_shared(place); }

// The memory of a block of the cluster, which begins with its signals
typedef unsigned Memory;
__device__ inline Memory memory_of(int block, float *memory) {
    Memory found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(address(memory)), "r"(block));
    return found;
}

__device__ inline void make_signal(float *memory, int signal) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;"
                 :: "r"(address(memory) + 8 * signal) : "memory");
}

// The signal is given, the next time, when so many bytes have been put
__device__ inline void expect(float *memory, int signal, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(address(memory) + 8 * signal), "r"(bytes) : "memory");
}

// `parity` is that of how often the signal had been given before. To acquire within the block is enough, as no shared
// memory is cached: an acquire of the cluster's shared memory alone compiles to the same.
__device__ inline void await(float *memory, int signal, int parity) {
    unsigned given;
    do
        asm volatile("{\n\t.reg .pred given;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 given, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, given;\n\t}"
                     : "=r"(given) : "r"(address(memory) + 8 * signal), "r"(parity) : "memory");
    while (!given);
}

__device__ inline void put(Memory there, int place, int signal, float4 x) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];"
                 :: "r"(there + 4 * place), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(there + 8 * signal) : "memory");
}

// Begins to copy 16 bytes from the device's memory; `finish_copies` waits for those of this thread
__device__ inline void copy(float *to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address(to)), "l"(from) : "memory");
}
__device__ inline void finish_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif

#define EACH(name, count) _Pragma("unroll") for (int name = 0; name < count; name++)
constexpr int BLOCKS = HIDDEN / 32, ROWS = 16 * TILES, THREADS = 256;
constexpr int SIGNALS = 32;                            // floats at the start of a block's memory, two for a signal
constexpr int BYTES = 4 * 16 * HIDDEN;                 // that a block gets for a tile and position
constexpr int STAGE = 6 * 32 + 4, FOUND = 2 * 32 + 8;  // of rows in shared memory: no two read at once in one bank
typedef long long Index;

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
    __device__ bool real(int row) const { return first + row < batch; }
    __device__ Index sequence(int row) const { return (Index)replica * batch + first + row; }

    // What it moves between the memories: 16 bytes of the four gates of rows `warp`, `warp + 8`, …
    __device__ int gates_stage() const { return warp * STAGE + 4 * lane; }
    __device__ int gates_column() const { return lane / 8 * HIDDEN + 32 * block + lane % 8 * 4; }
    __device__ Index gates_offset(int length) const { return sequence(warp) * length * 4 * HIDDEN + gates_column(); }
    // and 16 bytes of one of two single values, of rows `single_row`, `single_row + 16`, …
    __device__ int single_row() const { return 2 * warp + lane / 16; }
    __device__ bool second() const { return lane % 16 >= 8; }
    __device__ int single_stage() const { return single_row() * STAGE + 4 * 32 + lane % 16 * 4; }
    __device__ Index single_offset(int length) const {
        return sequence(single_row()) * length * HIDDEN + 32 * block + lane % 8 * 4;
    }
};

// Where the first operand of products keeps columns `column` and `column + 1` of rows `row` and `row + 8`: as the 16
// bytes that a thread takes of a 16×8 tile, out of the banks that its neighbours read. A sum may be taken in any order,
// so of 16 columns each thread of a quad takes four, for two products.
__device__ inline int operand(int tile, int row, int column, int width) {
    return ((8 * tile + row) * (width / 4) + column / 4) * 8 + (column / 2 % 2 ^ row % 2) * 4;
}

// Writes the gates of a position, or what came in their place; `step` lies between a thread's rows
__device__ inline void write(const Place &me, const float *stage, float *gates, Index step) {
    EACH(n, 2 * TILES)
        if (me.real(me.warp + 8 * n))
            *(float4 *)(gates + n * step) = *(const float4 *)(stage + 8 * n * STAGE + me.gates_stage());
}

__device__ inline void begin(float *memory) {
    for (int signal = 0; signal < 2 * TILES && threadIdx.x == 0; signal++) {
        make_signal(memory, signal);
        expect(memory, signal, BYTES);
    }
    meet();
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 1) lstm_forward(
    const float *inputs, const Index *rows, const float *weight, const float *start_h, const float *start_c,
    float *states, float *cells, float *gates, int batch, int length, int table_rows) {
    BLOCK_MEMORY;  // signals; the states before this position and after it: [2, ROWS, HIDDEN]; stages: [2, ROWS, STAGE]
    const Place me(batch);
    constexpr int DEEP = HIDDEN / 8, BUFFER = ROWS * HIDDEN;
    float *stages = memory + SIGNALS + 2 * BUFFER;

    float b[2][DEEP][2];  // columns 2u and 2u + 1 of one half are the gates i and f of unit u, of the other g and o
    EACH(half, 2) {
        int gate = 2 * half + me.group % 2;
        const float *row = weight + ((Index)me.replica * 4 * HIDDEN + gate * HIDDEN + 32 * me.block + 4 * me.warp +
                                     me.group / 2) * HIDDEN + 4 * me.quad;
        EACH(k, DEEP) {
            b[half][k][0] = rounded(row[k / 2 * 16 + k % 2 * 2]);
            b[half][k][1] = rounded(row[k / 2 * 16 + k % 2 * 2 + 1]);
        }
    }
    for (int place = threadIdx.x; place < BUFFER; place += THREADS) {
        int row = place / HIDDEN, unit = place % HIDDEN;
        memory[SIGNALS + operand(row / 16, row % 8, unit, HIDDEN) + unit % 2 * 2 + row / 8 % 2] =
            me.real(row) ? rounded(start_h[me.sequence(row) * HIDDEN + unit]) : 0.0f;
    }
    float cell[2 * TILES];
    EACH(pair, 2 * TILES)
        cell[pair] = me.real(me.row(pair)) ? start_c[me.sequence(me.row(pair)) * HIDDEN + me.unit] : 0.0f;

    // Of the warp's four units the even lanes of a quad put the first two, the odd lanes the others
    const int put_from = me.lane - me.quad + me.quad % 2 * 2;
    const int put_at = SIGNALS + operand(0, me.group, 32 * me.block + 4 * me.warp + me.quad % 2 * 2, HIDDEN);
    Memory others[BLOCKS / 2];
    EACH(n, BLOCKS / 2) others[n] = memory_of((me.block + me.quad / 2 + 2 * n) % BLOCKS, memory);

    Index chosen[2 * TILES];  // of the table of inputs, for the next position to be copied
    auto choose = [&](int time) {
        EACH(n, 2 * TILES)
            if (int row = me.warp + 8 * n; me.real(row) && time < length)
                chosen[n] = rows ? rows[me.sequence(row) * length + time] : (Index)(me.first + row) * length + time;
    };
    const float *table = inputs + (Index)me.replica * table_rows * 4 * HIDDEN + me.gates_column();
    auto fetch = [&](int time) {
        EACH(n, 2 * TILES)
            if (me.real(me.warp + 8 * n) && time < length)
                copy(stages + (time % 2 * ROWS + 8 * n) * STAGE + me.gates_stage(), table + chosen[n] * 4 * HIDDEN);
    };
    float *gates_out = gates + me.gates_offset(length);
    float *single_out = (me.second() ? states : cells) + me.single_offset(length);
    const Index gates_step = (Index)8 * length * 4 * HIDDEN, single_step = (Index)16 * length * HIDDEN;

    choose(0), fetch(0), finish_copies();
    choose(1), fetch(1), choose(2);
    begin(memory);

    for (int time = 0; time < length; time++) {
        float *stage = stages + time % 2 * ROWS * STAGE;
        EACH(tile, TILES) {
            float gate[2][4], state[2];  // by row and gate: first the inputs
            EACH(place, 8)
                gate[place / 4][place % 4] = stage[me.row(2 * tile + place / 4) * STAGE + place % 4 * 32 + me.local];
            if (time) {
                int signal = time % 2 * TILES + tile;
                await(memory, signal, (time - 1) >> 1 & 1);
                if (threadIdx.x == 0) expect(memory, signal, BYTES);
            }
            const float *before = memory + SIGNALS + time % 2 * BUFFER;
            const float *even = before + operand(tile, me.group, 4 * me.quad, HIDDEN);
            const float *odd = before + operand(tile, me.group, 4 * me.quad + 2, HIDDEN);
            float sum[2][2][4] = {};  // by half of the gates, and even and odd k: independent chains
            EACH(k, DEEP)
                EACH(n, 2) multiply(sum[n][k % 2], *(const float4 *)((k % 2 ? odd : even) + k / 2 * 32), b[n][k]);
            EACH(pair, 2) {
                EACH(part, 4) {
                    int place = 2 * pair + part % 2;
                    float x = sum[part / 2][0][place] + sum[part / 2][1][place] + gate[pair][part];
                    gate[pair][part] = part == 2 ? squash(x) : sigmoid(x);
                }
                float &c = cell[2 * tile + pair];
                c = gate[pair][1] * c + gate[pair][0] * gate[pair][2];
                state[pair] = gate[pair][3] * squash(c);
            }
            if (time + 1 < length) {
                float upper = rounded(state[0]), lower = rounded(state[1]);
                float4 both;
                both.x = from_lane(upper, put_from), both.y = from_lane(lower, put_from);
                both.z = from_lane(upper, put_from + 1), both.w = from_lane(lower, put_from + 1);
                EACH(n, BLOCKS / 2)
                    put(others[n], put_at + (time + 1) % 2 * BUFFER + 16 * tile * HIDDEN,
                        (time + 1) % 2 * TILES + tile, both);
            }
            EACH(pair, 2) {
                float *at = stage + me.row(2 * tile + pair) * STAGE + me.local;
                EACH(part, 4) at[32 * part] = gate[pair][part];
                at[4 * 32] = cell[2 * tile + pair], at[5 * 32] = state[pair];
            }
        }
        finish_copies();
        __syncthreads();  // the stage of this position is written, that of the next one filled
        write(me, stage, gates_out, gates_step);
        EACH(n, TILES)
            if (me.real(me.single_row() + 16 * n))
                *(float4 *)(single_out + n * single_step) =
                    *(const float4 *)(stage + 16 * n * STAGE + me.single_stage());
        gates_out += 4 * HIDDEN, single_out += HIDDEN;
        fetch(time + 2), choose(time + 3);
    }
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 1) lstm_backward(
    const float *weight, const float *gates, const float *cells, const float *start_c, const float *d_states,
    const float *d_last, const float *d_cell, float *d_gates, float *d_hidden, float *d_cells, int batch, int length) {
    // signals; what the blocks found for the states of this one, two rows side by side: [2, TILES, BLOCKS, 8, FOUND];
    // its own gates as an operand: [2, 16, 4 * 32]; stages: [2, ROWS, STAGE]
    BLOCK_MEMORY;
    const Place me(batch);
    constexpr int DEEP = 16, ACROSS = HIDDEN / 64, CHAINS = 4 / ACROSS;  // four sums do not wait for one another
    constexpr int TILE = BLOCKS * 8 * FOUND, BUFFER = TILES * TILE;
    float *operands = memory + SIGNALS + 2 * BUFFER, *stages = operands + 2 * 16 * 4 * 32;

    int column = me.warp * (HIDDEN / 8);  // the first hidden unit of the warp's products; they all belong to one block
    float b[ACROSS][DEEP][2];             // the sum is over 32 units, and the four gates of each
    EACH(k, DEEP) {
        const float *row = weight + ((Index)me.replica * 4 * HIDDEN + k % 2 * 2 * HIDDEN + 32 * me.block + k / 2 * 4 +
                                     me.quad) * HIDDEN + column + me.group;
        EACH(n, ACROSS) {
            b[n][k][0] = rounded(row[8 * n]);
            b[n][k][1] = rounded(row[HIDDEN * HIDDEN + 8 * n]);
        }
    }
    const Memory other = memory_of(column / 32, memory);
    const int put_at = SIGNALS + (me.block * 8 + me.group) * FOUND + 2 * (column % 32 + 2 * me.quad);

    float from_next[2 * TILES], carried[2 * TILES], cell[2 * TILES];
    EACH(pair, 2 * TILES) {
        bool real = me.real(me.row(pair));
        Index sequence = me.sequence(me.row(pair)), place = sequence * HIDDEN + me.unit;
        from_next[pair] = real ? d_last[place] : 0.0f;
        carried[pair] = real ? d_cell[place] : 0.0f;
        cell[pair] = real ? cells[(sequence * length + length - 1) * HIDDEN + me.unit] : 0.0f;
    }
    const Index gates_step = (Index)8 * length * 4 * HIDDEN, single_step = (Index)16 * length * HIDDEN;
    const Index gates_last = me.gates_offset(length) + (Index)(length - 1) * 4 * HIDDEN;
    const float *gates_in = gates + gates_last, *start = start_c + me.single_offset(1);
    const float *single_in = (me.second() ? d_states : cells - HIDDEN) + me.single_offset(length) +
                             (Index)(length - 1) * HIDDEN;  // of the cells those of the position before
    float *gates_out = d_gates + gates_last;
    auto fetch = [&](int step) {
        if (step >= length) return;
        float *stage = stages + step % 2 * ROWS * STAGE;
        EACH(n, 2 * TILES)
            if (me.real(me.warp + 8 * n)) copy(stage + 8 * n * STAGE + me.gates_stage(), gates_in + n * gates_step);
        bool from_start = step == length - 1 && !me.second();
        EACH(n, TILES)
            if (me.real(me.single_row() + 16 * n))
                copy(stage + 16 * n * STAGE + me.single_stage(),
                     from_start ? start + n * 16 * HIDDEN : single_in + n * single_step);
        gates_in -= 4 * HIDDEN, single_in -= HIDDEN;
    };
    auto receive = [&](int step, int tile) {
        int signal = step % 2 * TILES + tile;
        await(memory, signal, step >> 1 & 1);
        if (threadIdx.x == 0) expect(memory, signal, BYTES);
        const float *found = memory + SIGNALS + step % 2 * BUFFER + tile * TILE + me.group * FOUND + 2 * me.local;
        float upper = 0.0f, lower = 0.0f;
        EACH(block, BLOCKS) {
            const float2 both = *(const float2 *)(found + block * 8 * FOUND);
            upper += both.x, lower += both.y;
        }
        from_next[2 * tile] = upper, from_next[2 * tile + 1] = lower;
    };
    fetch(0), finish_copies();
    fetch(1);
    begin(memory);

    for (int step = 0; step < length; step++) {  // back from the last position
        float *stage = stages + step % 2 * ROWS * STAGE;
        EACH(tile, TILES) {
            float *own = operands + (step * TILES + tile) % 2 * 16 * 4 * 32;
            float by_state[2][2], by_cell[2][4], given[2];  // all that does not wait for the position after this one
            EACH(pair, 2) {
                const float *at = stage + me.row(2 * tile + pair) * STAGE + me.local;
                float i = at[0], f = at[32], g = at[2 * 32], o = at[3 * 32], before = at[4 * 32];
                float squashed = squash(cell[2 * tile + pair]);
                given[pair] = at[5 * 32];
                by_state[pair][0] = o * (1.0f - squashed * squashed), by_state[pair][1] = squashed * o * (1.0f - o);
                by_cell[pair][0] = g * i * (1.0f - i), by_cell[pair][1] = before * f * (1.0f - f);
                by_cell[pair][2] = i * (1.0f - g * g), by_cell[pair][3] = f;
                cell[2 * tile + pair] = before;
            }
            if (step) receive(step - 1, tile);
            float d[2][4];
            EACH(pair, 2) {
                float dh = given[pair] + from_next[2 * tile + pair], &c = carried[2 * tile + pair];
                float dc = c + dh * by_state[pair][0];
                d[pair][0] = dc * by_cell[pair][0], d[pair][1] = dc * by_cell[pair][1];
                d[pair][2] = dc * by_cell[pair][2], d[pair][3] = dh * by_state[pair][1];
                c = dc * by_cell[pair][3];
                float *at = stage + me.row(2 * tile + pair) * STAGE + me.local;
                EACH(gate, 4) at[32 * gate] = d[pair][gate];
            }
            EACH(n, 2)
                *(float4 *)(own + operand(0, me.group, 4 * me.local + 2 * n, 4 * 32)) = {
                    rounded(d[0][2 * n]), rounded(d[1][2 * n]), rounded(d[0][2 * n + 1]), rounded(d[1][2 * n + 1])};
            if (tile == TILES - 1) finish_copies();
            __syncthreads();  // the operand is written; after the last tile also the stage, and the next one is filled
            const float *even = own + operand(0, me.group, 4 * me.quad, 4 * 32);
            const float *odd = own + operand(0, me.group, 4 * me.quad + 2, 4 * 32);
            float sum[CHAINS][ACROSS][4] = {};
            EACH(k, DEEP)
                EACH(n, ACROSS)
                    multiply(sum[k % CHAINS][n], *(const float4 *)((k % 2 ? odd : even) + k / 2 * 32), b[n][k]);
            EACH(n, ACROSS) {
                EACH(place, 4 * (CHAINS - 1))
                    sum[0][n][place % 4] += sum[1 + place / 4][n][place % 4];
                put(other, put_at + step % 2 * BUFFER + tile * TILE + 16 * n, step % 2 * TILES + tile,
                    {sum[0][n][0], sum[0][n][2], sum[0][n][1], sum[0][n][3]});
            }
        }
        write(me, stage, gates_out, gates_step);
        gates_out -= 4 * HIDDEN;
        fetch(step + 2);
    }
    EACH(tile, TILES) receive(length - 1, tile);
    EACH(pair, 2 * TILES)
        if (me.real(me.row(pair))) {
            Index place = me.sequence(me.row(pair)) * HIDDEN + me.unit;
            d_hidden[place] = from_next[pair], d_cells[place] = carried[pair];
        }
}
