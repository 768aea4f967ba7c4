package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/opblocks/opblocks/internal/requests"
)

// operatorVariable is the environment variable with which this test binary becomes an operator: a JSON [operatorProcess].
const operatorVariable = "OPBLOCKS_BENCH_OPERATOR"

// operatorProcess is a process that runs one operator and nothing else. So its memory is the operator's memory: in the
// process of the benchmark, the memory of earlier measurements would count as well.
type operatorProcess struct {
	Variant, Namespace, Kubeconfig string
	Size                           int
}

// memory is what a process needs that was started when all objects had converged, and has reconciled each of them once.
type memory struct {
	Heap     int64 // live heap in bytes, less the heap of the process before it had a manager
	Resident int64 // VmRSS in bytes, after the runtime has returned what it does not use
	Peak     int64 // VmHWM in bytes: the most that was resident
	Requests int
	Seconds  float64 // until each object was reconciled
}

func (m *memory) report(b *testing.B, size int) {
	const kib, mib = 1 << 10, 1 << 20
	b.ReportMetric(float64(m.Heap)/kib/float64(size), "heap-KiB/object")
	b.ReportMetric(float64(m.Heap)/mib, "heap-MiB")
	b.ReportMetric(float64(m.Resident)/mib, "resident-MiB")
	b.ReportMetric(float64(m.Resident)/kib/float64(size), "resident-KiB/object")
	b.ReportMetric(float64(m.Peak)/mib, "peak-MiB")
	b.ReportMetric(float64(m.Requests), "restart-requests")
	b.ReportMetric(m.Seconds, "restart-s")
}

// restart starts the operator in a process of its own.
func (c *convergence) restart(ctx context.Context) (*memory, error) {
	text, err := json.Marshal(operatorProcess{Variant: c.variant, Namespace: c.namespace, Kubeconfig: c.plane.Kubeconfig(), Size: c.size})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), operatorVariable+"="+string(text))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("operator in a process of its own: %w: %s", err, stderr.Bytes())
	}
	m := &memory{}
	return m, json.Unmarshal(output, m)
}

// runOperatorProcess is the main function of the process.
func runOperatorProcess() (exitCode int) {
	var p operatorProcess
	err := json.Unmarshal([]byte(os.Getenv(operatorVariable)), &p)
	if err == nil {
		err = p.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (p *operatorProcess) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return err
	}
	before := liveHeap()
	var count requests.Count
	mgr, err := newManager(count.Wrap(config), p.Variant, p.Namespace)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	start := time.Now()
	go func() { stopped <- mgr.Start(ctx) }()
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		n, err := passes()
		return n >= float64(p.Size), err
	})
	if err != nil {
		return err
	}
	m := memory{Seconds: time.Since(start).Seconds(), Requests: len(count.Sent())}
	m.read()
	m.Heap -= before
	if err := writeHeapProfile(os.Getenv("BENCH_HEAP_PROFILE")); err != nil {
		return err
	}
	stop()
	if err := <-stopped; err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

func (m *memory) read() {
	m.Peak = processStatus("VmHWM")
	m.Heap = liveHeap()
	debug.FreeOSMemory()
	m.Resident = processStatus("VmRSS")
}

// writeHeapProfile writes what is in the heap to a file. It does nothing without a name.
func writeHeapProfile(name string) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // frees what Go finalizers kept alive
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// processStatus returns a value of /proc/self/status in bytes, or 0 on a system without it.
func processStatus(name string) int64 {
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// passes returns how many passes the controllers of this process have run.
func passes() (total float64, err error) {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total, nil
}
