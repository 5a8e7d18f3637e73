"""The injection library in C: NVTX of any program, and CUPTI's records in windows.

One library serves both, because NVTX takes one library only (``NVTX_INJECTION64_PATH``) and the CUDA driver loads it
itself (``CUDA_INJECTION64_PATH``). It pumps CUPTI's buffers in C. torch 2.13 carries such a pool too, but behind private
names, with a Python thread that drains it, and for programs with that torch alone: this one needs neither an interpreter
lock nor an interpreter, and works the same in servers written in C++.
"""
