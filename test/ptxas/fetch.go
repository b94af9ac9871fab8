package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// wheel is the package of PyPI that has the assembler.
const wheel = "nvidia-cuda-nvcc==13.5.37"

// fetch downloads the wheel into a folder and takes the assembler out of it.
func fetch(python, dir string) (string, error) {
	out, err := exec.Command(python, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", dir, wheel).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: %s", wheel, err, strings.TrimSpace(string(out)))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("fetch %s: %d wheels", wheel, len(files))
	}
	z, err := zip.OpenReader(files[0])
	if err != nil {
		return "", fmt.Errorf("open %s: %w", files[0], err)
	}
	defer z.Close()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/bin/ptxas") {
			return extract(f, filepath.Join(dir, "ptxas"))
		}
	}
	return "", fmt.Errorf("open %s: no ptxas in it", files[0])
}

func extract(f *zip.File, to string) (string, error) {
	from, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("extract %s: %w", f.Name, err)
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(file, from); err != nil {
		file.Close()
		return "", fmt.Errorf("extract %s: %w", f.Name, err)
	}
	return to, file.Close()
}
