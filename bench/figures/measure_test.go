package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMeasure measures with programs that only print.
func TestMeasure(t *testing.T) {
	const benchmarks = "cpu: EPYC\nBenchmarkDeployment-2 \t 100 \t 5 ns/op\n"
	tests := map[string]struct {
		reason             string
		apiserver, command string // scripts
		want, err          string
	}{
		"Measured": {"the versions come first", "echo Kubernetes v1.37.2", "printf '" + `cpu: EPYC\nBenchmarkDeployment-2 \t 100 \t 5 ns/op\n` + "'",
			"kube-apiserver: 1.37.2\netcd: 3.6.8\n" + benchmarks, ""},
		"Failed":    {"a page is not made of half the figures", "echo Kubernetes v1.37.2", "echo FAIL; exit 1", "etcd: 3.6.8\nFAIL\n", "lists: exit status 1"},
		"NoProgram": {"the remedy is named", "exit 127", "exit 0", "", "run `make control-plane` first: kube-apiserver --version: exit status 127"},
		"NoVersion": {"a changed format is seen", "echo unknown", "exit 0", "", `kube-apiserver --version: there is no version in "unknown\n"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for program, script := range map[string]string{
				"kube-apiserver": tc.apiserver, "etcd": "echo etcd Version: 3.6.8; echo Git SHA: Not provided", "go": tc.command,
			} {
				require.NoError(t, os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
			}
			t.Setenv("PATH", folder)
			file := filepath.Join(folder, "bench.txt")
			var stdout, stderr bytes.Buffer
			err := measure(t.Context(), file, folder, []suite{{"lists", ".", []string{"-bench=List", "."}}}, &stdout, &stderr)
			if tc.err == "" {
				require.NoError(t, err, tc.reason)
				assert.Equal(t, "opblocks: measuring lists; do nothing else on this machine\n", stderr.String())
			} else {
				require.EqualError(t, err, tc.err, tc.reason)
			}
			written, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, stdout.String(), string(written))
			assert.Contains(t, string(written), tc.want, tc.reason)
		})
	}
}
