package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
)

// blasName is the vendor BLAS: VBLAS_LIB names it, else it is in lib/ beside the executable, else the loader finds it.
const blasName = "libvendorblas.so"

// blas is the vendor BLAS (runners/reference/blas/vblas.h), bound like the driver.
type blas struct {
	gemm, destroy, text, last *cuda.Proc

	handle uintptr
	dtype  uintptr // vblasDataType_t
}

// openBLAS makes a handle that works on a stream of the current context.
func openBLAS(stream cuda.Stream, storage kernels.Storage) (*blas, error) {
	lib := cuda.Library(blasPath())
	b := &blas{
		gemm: lib.Proc("vblasGemm"), destroy: lib.Proc("vblasDestroy"),
		text: lib.Proc("vblasGetStatusString"), last: lib.Proc("vblasLastError"),
		dtype: elements[storage].blas,
	}
	if err := b.call(lib.Proc("vblasCreate"), uintptr(unsafe.Pointer(&b.handle))); err != nil {
		return nil, err
	}
	if err := b.call(lib.Proc("vblasSetStream"), b.handle, uintptr(stream)); err != nil {
		return nil, err
	}
	return b, nil
}

func blasPath() string {
	if path := os.Getenv("VBLAS_LIB"); path != "" {
		return path
	}
	if exe, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(exe), "lib", blasName)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return blasName
}

// call turns a status into an error that carries the library's words.
//
//go:uintptrescapes
func (b *blas) call(p *cuda.Proc, args ...uintptr) error {
	status, err := p.Invoke(args...)
	if err != nil {
		return err
	}
	if status = uintptr(uint32(status)); status == 0 {
		return nil
	}
	text, _ := b.text.Invoke(status)
	last, _ := b.last.Invoke()
	return fmt.Errorf("%s: %s: %s", p.Name(), cuda.StringAt(text), cuda.StringAt(last))
}

// linear enqueues out[rows][n] = in[rows][k] * weight[n][k] transposed.
func (b *blas) linear(out, in, weight cuda.DevicePtr, rows, n, k int) error {
	return b.call(b.gemm, b.handle, b.dtype, uintptr(rows), uintptr(n), uintptr(k),
		uintptr(in), uintptr(k), uintptr(weight), uintptr(k), uintptr(out), uintptr(n))
}

// close gives the handle back; no graph that used it may be launched any more.
func (b *blas) close() error { return b.call(b.destroy, b.handle) }
