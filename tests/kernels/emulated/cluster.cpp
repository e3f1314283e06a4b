// Runs a CUDA kernel that uses clusters on a CPU: every GPU thread is a thread, barriers are barriers, the tensor cores'
// product is written out, and shared memory starts as NaN. What a thread copies is NaN until it finishes its copies.
// Built as a library: see tests/kernels/test_cluster_lstm.py.
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define EMULATED
#define __device__
#define __global__
#define __cluster_dims__(...)
#define __launch_bounds__(...)
#define BLOCK_MEMORY float *memory = block->memory.data()

struct Dim { unsigned x = 0, y = 0; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct Warp {
    std::barrier<> barrier{32};
    float a[32][4], b[32][2], shared[32];
};
struct Signal {  // given when one thread has said what to expect and all those bytes have come
    static constexpr int UNSAID = 1 << 24;
    std::atomic<int> open{UNSAID}, times{0};
    void change(int bytes) {
        if (open.fetch_add(bytes, std::memory_order_release) + bytes) return;
        open.fetch_add(UNSAID, std::memory_order_acquire);
        times.fetch_add(1, std::memory_order_release);
        times.notify_all();
    }
    void wait(int parity) {
        for (int now; (now = times.load(std::memory_order_acquire)) % 2 == parity;) times.wait(now);
    }
};
struct Block {
    std::barrier<> barrier{256};
    Signal signals[4];
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
static void meet() { cluster->barrier.arrive_and_wait(); }
static float rounded(float x) {  // to TF32: ten bits of mantissa, ties away from zero
    return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~0x1fffu);
}
static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
static float from_lane(float x, int lane) {
    warp().shared[threadIdx.x % 32] = x;
    warp().barrier.arrive_and_wait();
    float found = warp().shared[lane];
    warp().barrier.arrive_and_wait();
    return found;
}
static void multiply(float (&c)[4], const float4 &a, const float (&b)[2]) {
    int lane = threadIdx.x % 32;
    std::memcpy(warp().a[lane], &a, sizeof a);
    std::memcpy(warp().b[lane], b, sizeof b);
    warp().barrier.arrive_and_wait();
    for (int part = 0; part < 4; part++) {
        int row = lane / 4 + part / 2 * 8, column = lane % 4 * 2 + part % 2;
        for (int k = 0; k < 8; k++)
            c[part] += warp().a[row % 8 * 4 + k % 4][row / 8 + k / 4 * 2] * warp().b[column * 4 + k % 4][k / 4];
    }
    warp().barrier.arrive_and_wait();
}
using Memory = Block *;
static Memory memory_of(int number, float *) { return cluster->blocks.at(number).get(); }
static void make_signal(float *, int) {}
static void expect(float *, int signal, int bytes) { block->signals[signal].change(bytes - Signal::UNSAID); }
static void await(float *, int signal, int parity) { block->signals[signal].wait(parity); }
static void put(Memory there, int place, int signal, float4 x) {
    std::memcpy(&there->memory.at(place), &x, sizeof x);
    there->signals[signal].change(-(int)sizeof x);
}
thread_local std::vector<std::pair<float *, const float *>> copies;
static void copy(float *to, const float *from) {
    for (int place = 0; place < 4; place++) to[place] = std::numeric_limits<float>::quiet_NaN();
    copies.emplace_back(to, from);
}
static void finish_copies() {
    for (auto [to, from] : copies) std::memcpy(to, from, 4 * sizeof *to);
    copies.clear();
}

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
