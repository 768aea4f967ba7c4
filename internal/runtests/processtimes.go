package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ticksPerSecond is the unit of times in /proc: see proc_pid_stat(5), and USER_HZ in the kernel. It is the same on all architectures.
const ticksPerSecond = 100

// processTimes measures the processor time of test programs from /proc, because the go command does not report it. On a system without
// /proc, it measures nothing.
type processTimes struct {
	proc string // the folder /proc

	mu    sync.Mutex
	ticks map[string]int // the user time in ticks, by the folder of the package
}

func newProcessTimes() *processTimes { return &processTimes{proc: "/proc", ticks: map[string]int{}} }

// of returns the user time of a package's tests, and of all programs that they started, as far as sample has seen it.
func (t *processTimes) of(folder string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.ticks[folder]) * time.Second / ticksPerSecond
}

// process is a process as /proc describes it.
type process struct {
	name   string // the first 15 bytes of the name of its program
	parent int
	ticks  int // the user time of the process, and of its children that have ended and that it has waited for
}

// mayTest reports whether the process may be a test program: a long name may end in .test after its first 15 bytes.
func (p *process) mayTest() bool { return len(p.name) == 15 || strings.HasSuffix(p.name, ".test") }

// sample reads the times of all processes.
func (t *processTimes) sample() {
	entries, _ := os.ReadDir(t.proc)
	processes, children := map[int]process{}, map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(t.proc, entry.Name(), "stat"))
		if p, ok := parseStat(string(text)); err == nil && ok {
			processes[pid] = p
			children[p.parent] = append(children[p.parent], pid)
		}
	}
	var total func(pid int) int
	total = func(pid int) int {
		sum := processes[pid].ticks
		for _, child := range children[pid] {
			sum += total(child)
		}
		return sum
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid, p := range processes {
		if !p.mayTest() {
			continue
		}
		folder := filepath.Join(t.proc, strconv.Itoa(pid))
		program, _ := os.Readlink(filepath.Join(folder, "exe"))
		if working, err := os.Readlink(filepath.Join(folder, "cwd")); err == nil && strings.HasSuffix(program, ".test") {
			t.ticks[working] = max(t.ticks[working], total(pid))
		}
	}
}

// parseStat parses a file named stat in /proc. The second field is the name of the program in parentheses, which may contain any
// characters.
func parseStat(text string) (process, bool) {
	end := strings.LastIndexByte(text, ')')
	_, name, _ := strings.Cut(text[:max(end, 0)], "(")
	fields := strings.Fields(text[end+1:])
	if len(fields) < 14 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	own, err2 := strconv.Atoi(fields[11])
	waited, err3 := strconv.Atoi(fields[13])
	return process{name, parent, own + waited}, err1 == nil && err2 == nil && err3 == nil
}
