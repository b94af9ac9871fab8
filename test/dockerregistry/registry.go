package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// server is a running docker-registry on the loopback interface.
type server struct {
	host    string
	version string
	cmd     *exec.Cmd
	log     *os.File
}

func startRegistry(dir string) (*server, error) {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		return nil, fmt.Errorf("start registry: %w (scripts/test-oci installs it)", err)
	}
	version, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	host, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	config := filepath.Join(dir, "registry.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage:\n  filesystem: {rootdirectory: %s}\nhttp: {addr: %s}\n", filepath.Join(dir, "registry"), host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	s := &server{host: host, version: strings.Join(strings.Fields(string(version)), " ")}
	if s.log, err = os.Create(filepath.Join(dir, "registry.log")); err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	s.cmd = exec.Command(program, "serve", config)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			_ = resp.Body.Close()
			return s, nil
		}
		if time.Now().After(deadline) {
			s.stop()
			log, _ := os.ReadFile(s.log.Name())
			return nil, fmt.Errorf("start registry: %w\n%s", err, log)
		}
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.log.Close()
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// get fetches from the registry without any of the tool's code.
func (s *server) get(path string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+s.host+"/v2/"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json")
	return s.do(req, http.StatusOK)
}

func (s *server) do(req *http.Request, want int) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s %s: %s %s", req.Method, req.URL, resp.Status, data)
	}
	return data, err
}

// putBlob uploads a blob of a base image.
func (s *server) putBlob(repo string, data []byte) error {
	resp, err := http.Post("http://"+s.host+"/v2/"+repo+"/blobs/uploads/", "", nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return err
	}
	query := to.Query()
	query.Set("digest", digestOf(data))
	to.RawQuery = query.Encode()
	req, err := http.NewRequest(http.MethodPut, to.String(), bytes.NewReader(data))
	if err != nil {
		return err
	}
	_, err = s.do(req, http.StatusCreated)
	return err
}

func (s *server) putManifest(repo, tag, mediaType string, data []byte) error {
	req, err := http.NewRequest(http.MethodPut, "http://"+s.host+"/v2/"+repo+"/manifests/"+tag, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", mediaType)
	_, err = s.do(req, http.StatusCreated)
	return err
}
