"""The injection library in C: NVTX of any program, and CUPTI's records in windows.

One library serves both, because NVTX takes one library only (``NVTX_INJECTION64_PATH``) and the CUDA driver loads it
itself (``CUDA_INJECTION64_PATH``). It pumps CUPTI's buffers in C. torch 2.13 carries such a pool too, but behind private
names, with a Python thread that drains it, and for programs with that torch alone: this one needs neither an interpreter
lock nor an interpreter, and works the same in servers written in C++.

Seen on an H200 (CUDA 13.0, torch 2.11, transformers 5.17): kernels by name equal to those of torch's profiler; closing a window
held up no step by more than its usual time. Seen too, and kept away from: a program died that replayed, while whole replays
were recorded (GRAPH_TRACE), a graph that it had made before, so that windows record a graph's kernels unless asked otherwise;
and after a thousand windows CUPTI gave nobody a kernel any more, so that a process has a hundred at most and stops at the first
window that saw launches and no kernel. torch's profiler, once used, stays subscribed: a window is refused then (``other_client``)
unless it is asked to share, which worked as long as no window of the profiler was open.
"""
