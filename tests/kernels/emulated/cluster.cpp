// Runs a CUDA kernel that uses clusters on a CPU: every GPU thread is a thread, barriers are barriers, the tensor cores'
// product is written out, and shared memory starts as NaN. Built as a library: see tests/kernels/test_cluster_lstm.py.
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#define EMULATED
#define __expf std::exp
#define __device__
#define __global__
#define __cluster_dims__(...)
#define __launch_bounds__(...)
#define BLOCK_MEMORY float *memory = block->memory.data()

struct Dim { unsigned x = 0, y = 0; };
struct float4 { float x, y, z, w; };
struct Warp {
    std::barrier<> barrier{32};
    float a[32][4], b[32][2], shared[32];
};
struct Block {
    std::barrier<> barrier{256};
    std::vector<float> memory;
    Warp warps[8];
};
struct Cluster {
    std::barrier<> barrier;
    std::vector<std::unique_ptr<Block>> blocks;
    Cluster(int count, size_t floats) : barrier(count * 256) {
        for (int number = 0; number < count; number++) {
            blocks.push_back(std::make_unique<Block>());
            blocks.back()->memory.assign(floats, std::numeric_limits<float>::quiet_NaN());
        }
    }
};
thread_local Dim threadIdx, blockIdx;
thread_local Cluster *cluster;
thread_local Block *block;
static Warp &warp() { return block->warps[threadIdx.x / 32]; }
static void __syncthreads() { block->barrier.arrive_and_wait(); }
thread_local std::optional<std::barrier<>::arrival_token> arrived;
static void arrive() { arrived = cluster->barrier.arrive(); }
static void wait() { cluster->barrier.wait(std::move(*arrived)); }
static float rounded(float x) {  // to TF32: ten bits of mantissa, ties away from zero
    return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~0x1fffu);
}
static float from_lane(float x, int lane) {
    warp().shared[threadIdx.x % 32] = x;
    warp().barrier.arrive_and_wait();
    float found = warp().shared[lane];
    warp().barrier.arrive_and_wait();
    return found;
}
static void multiply(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
    int lane = threadIdx.x % 32;
    std::memcpy(warp().a[lane], a, sizeof a);
    std::memcpy(warp().b[lane], b, sizeof b);
    warp().barrier.arrive_and_wait();
    for (int part = 0; part < 4; part++) {
        int row = lane / 4 + part / 2 * 8, column = lane % 4 * 2 + part % 2;
        for (int k = 0; k < 8; k++)
            c[part] += warp().a[row % 8 * 4 + k % 4][row / 8 + k / 4 * 2] * warp().b[column * 4 + k % 4][k / 4];
    }
    warp().barrier.arrive_and_wait();
}
static float *there(float *place, int other) { return cluster->blocks.at(other)->memory.data() + (place - block->memory.data()); }
static void put(float *place, int other, float4 x) { std::memcpy(there(place, other), &x, sizeof x); }
static void put(float *place, int other, float x, float y) { there(place, other)[0] = x, there(place, other)[1] = y; }

#include KERNEL

template <class Kernel> void launch(int clusters, size_t floats, Kernel kernel) {
    for (int number = 0; number < clusters; number++) {
        Cluster here(BLOCKS, floats);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < BLOCKS * THREADS; thread++)
            threads.emplace_back([&, thread] {
                threadIdx.x = thread % THREADS, blockIdx.x = thread / THREADS, blockIdx.y = number;
                cluster = &here, block = here.blocks[blockIdx.x].get();
                kernel();
            });
        for (auto &thread : threads) thread.join();
    }
}

extern "C" void run_forward(
    int clusters, int floats, const float *inputs, const Index *rows, const float *weight, const float *start_h,
    const float *start_c, float *states, float *cells, float *gates, int batch, int length, int table_rows) {
    launch(clusters, floats, [&] {
        lstm_forward(inputs, rows, weight, start_h, start_c, states, cells, gates, batch, length, table_rows);
    });
}

extern "C" void run_backward(
    int clusters, int floats, const float *weight, const float *gates, const float *cells, const float *start_c,
    const float *d_states, const float *d_last, const float *d_cell, float *d_gates, float *d_hidden, float *d_cells,
    int batch, int length) {
    launch(clusters, floats, [&] {
        lstm_backward(weight, gates, cells, start_c, d_states, d_last, d_cell, d_gates, d_hidden, d_cells, batch, length);
    });
}
