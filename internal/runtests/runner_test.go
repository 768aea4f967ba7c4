package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryTestFile checks that make test runs every test file of the repository: no module is forgotten, and no file is left out
// because of its name or a build constraint.
func TestEveryTestFile(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Setenv("GOWORK", filepath.Join(root, "go.work")) // make compatibility runs the tests without a workspace and with other flags
	t.Setenv("GOFLAGS", "")
	modules, err := modulesIn(root)
	require.NoError(t, err)
	run := map[string]bool{}
	for _, m := range modules {
		for _, p := range m.packages {
			for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
				run[filepath.Join(p.Dir, name)] = true
			}
		}
	}
	require.NoError(t, eachTestFile(root, func(file string) {
		assert.True(t, run[file], "make test leaves out %s", file)
	}))
	assert.NotEmpty(t, run)
}

// checkout writes a workspace with a module that has these test functions, each in its own package. The package hack/outside is a module outside
// of the workspace.
func checkout(t *testing.T, tests map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.work", "go 1.26.0\n\nuse .\n")
	write("go.mod", "module example.com/shop\n\ngo 1.26.0\n")
	write("hack/outside/go.mod", "module example.com/outside\n\ngo 1.26.0\n")
	write("testdata/left_test.go", "package left\n")
	for name, body := range tests {
		write(name+"/shop_test.go", "package "+filepath.Base(name)+"\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _, _ = fmt.Sprint, os.Getpid, time.Now\n\n"+body)
	}
	t.Setenv("GOWORK", filepath.Join(root, "go.work"))
	t.Setenv("GOFLAGS", "-count=1")
	return root
}

func TestRunner(t *testing.T) {
	tests := map[string]struct {
		reason  string
		tests   map[string]string
		want    error
		printed []string // regular expressions that the output has to match
		silent  []string // texts that the output must not have
	}{
		"Passes": {
			reason:  "what passes is a line; every module is tested",
			tests:   map[string]string{"cart": "func TestCart(t *testing.T) { fmt.Println(\"noise\") }\n", "hack/outside": "func TestOutside(*testing.T) {}\n"},
			printed: []string{`(?m)^ok +\texample.com/shop/cart\t`, `(?m)^ok +\texample.com/outside\t`, `tested 2 packages in \d+ s, 0 of them without a change since the last time; these took most:`, `(?m)^ +\d\.\d s .* example.com/shop/cart$`},
			silent:  []string{"noise", "failed"},
		},
		"Fails": {
			reason: "the output of what fails is printed, and its name once more at the end",
			tests: map[string]string{
				"cart": "func TestCart(t *testing.T) { t.Error(\"the cart is empty\") }\nfunc TestOther(t *testing.T) { t.Log(\"noise\") }\n",
				"till": "func TestTill(t *testing.T) {}\n",
			},
			want:    errFailed,
			printed: []string{"shop_test.go:12: the cart is empty", `(?m)^ok +\texample.com/shop/till\t`, `(?m)^opblocks: failed: example.com/shop/cart TestCart$`},
			silent:  []string{"noise"},
		},
		"DoesNotCompile": {
			reason: "the compiler's message is printed, and the other packages are tested",
			tests:  map[string]string{"cart": "func TestCart(t *testing.T) { t.Missing() }\n", "till": "func TestTill(t *testing.T) {}\n"},
			want:   errFailed, printed: []string{"t.Missing undefined", `(?m)^ok +\texample.com/shop/till\t`, "opblocks: failed: example.com/shop/cart"},
		},
		"Hangs": {
			reason:  "the test is named, and its goroutines are printed",
			tests:   map[string]string{"cart": "func TestCart(t *testing.T) { waitForEver() }\nfunc waitForEver() { select {} }\n"},
			want:    errFailed,
			printed: []string{"panic: test timed out after 2s", `running tests:\s+TestCart`, `shop/cart.waitForEver\(`, "opblocks: failed: example.com/shop/cart"},
		},
		"FullDisk": {
			reason: "it is said what to do",
			tests:  map[string]string{"cart": "func TestCart(t *testing.T) { t.Error(\"write x: no space left on device\") }\n"},
			want:   errFailed, printed: []string{"opblocks: the disk is full: see df"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := checkout(t, tc.tests)
			out, log := &bytes.Buffer{}, &bytes.Buffer{}
			err := (&runner{timeout: 2 * time.Second, out: out, log: log}).test(t.Context(), root)
			assert.Equal(t, tc.want, err, tc.reason)
			printed := out.String() + log.String()
			for _, want := range tc.printed {
				assert.Regexp(t, want, printed, tc.reason)
			}
			for _, silent := range tc.silent {
				assert.NotContains(t, printed, silent, tc.reason)
			}
		})
	}
}

// TestInterrupted interrupts the runner while it runs a test that never ends.
func TestInterrupted(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	require.NoError(t, syscall.Mkfifo(begun, 0o600))
	root := checkout(t, map[string]string{"cart": "func TestCart(t *testing.T) {\n\tif err := os.WriteFile(\"" + begun + "\", fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n\tselect {}\n}\n"})
	ctx, interrupt := context.WithCancel(t.Context())
	testing := make(chan string, 1)
	go func() {
		pid, err := os.ReadFile(begun) // succeeds when the test has written the file
		assert.NoError(t, err)
		interrupt()
		testing <- strings.TrimSpace(string(pid))
	}()
	out := &bytes.Buffer{}
	err := (&runner{timeout: time.Minute, out: out, log: t.Output()}).test(ctx, root)
	require.EqualError(t, err, "interrupted; nothing is left running", out)
	pid := <-testing
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, time.Millisecond, "the test still runs")
}

func TestBeginEarly(t *testing.T) {
	tests := map[string]struct {
		reason     string
		have, want []string
	}{
		"Last":    {"It moves before the other examples.", []string{"lib", "examples/app", "examples/new"}, []string{"lib", "examples/new", "examples/app"}},
		"First":   {"It is there already.", []string{"lib", "examples/new", "examples/new/more"}, []string{"lib", "examples/new", "examples/new/more"}},
		"Absent":  {"A part of the packages may be tested.", []string{"lib", "examples/app"}, []string{"lib", "examples/app"}},
		"Nothing": {"A module may have no tests.", nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &module{}
			for _, path := range tc.have {
				m.packages = append(m.packages, &testedPackage{ImportPath: path})
			}
			m.beginEarly("examples/new", "examples/")
			var got []string
			for _, p := range m.packages {
				got = append(got, p.ImportPath)
			}
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}

func TestSharesMemory(t *testing.T) {
	tests := map[string]struct {
		code string
		want bool
	}{
		"Goroutine": {"func f() { go f() }", true},
		"Sync":      {"import _ \"sync\"", true},
		"Atomic":    {"import _ \"sync/atomic\"", true},
		"Neither":   {"import _ \"context\"\n\nfunc f() { defer f() }", false},
		"Wrong":     {"func {", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\n\n"+tc.code+"\n"), 0o600))
			p := &testedPackage{Dir: folder, GoFiles: []string{"a.go"}}
			assert.Equal(t, tc.want, p.sharesMemory())
		})
	}
}

// TestProcessTimes reads a folder that looks like /proc.
func TestProcessTimes(t *testing.T) {
	proc := t.TempDir()
	for pid, stat := range map[string]string{
		"10": "10 (cart.test) S 1 10 10 0 -1 0 0 0 0 0 200 9 30 9 20 0 1 0 0",
		"11": "11 (a (b) c) S 10 10 10 0 -1 0 0 0 0 0 100 9 0 9 20 0 1 0 0",
		"12": "12 (other) S 1 10 10 0 -1 0 0 0 0 0 700 9 0 9 20 0 1 0 0",
		"13": "13 (shoppingbaskets) S 1 10 10 0 -1 0 0 0 0 0 500 9 0 9 20 0 1 0 0",
	} {
		require.NoError(t, os.Mkdir(filepath.Join(proc, pid), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(stat), 0o600))
	}
	for pid, name := range map[string]string{"10": "cart", "13": "shoppingbaskets"} {
		require.NoError(t, os.Symlink("/tmp/"+name+".test", filepath.Join(proc, pid, "exe")))
		require.NoError(t, os.Symlink("/shop/"+name, filepath.Join(proc, pid, "cwd")))
	}
	times := newProcessTimes()
	times.proc = proc
	times.sample()
	assert.Equal(t, 3300*time.Millisecond, times.of("/shop/cart"), "the program, what it has waited for, and what it has started")
	assert.Equal(t, 5*time.Second, times.of("/shop/shoppingbaskets"), "the system shortens the name of the program")
	assert.Zero(t, times.of("/shop/other"))
}
