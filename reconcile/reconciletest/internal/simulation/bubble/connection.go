package bubble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A run cannot wait for a real connection. While a goroutine waits for the network, the virtual clock does not move on. Packages net and
// net/http keep values between two requests. These values belong to the bubble of the first request, and crash the program when the next
// bubble uses them. This file finds real connections, and reports where they are opened:
//
//   - by hooks that are called before a connection is opened: in contexts that come from the process, and in http.DefaultTransport;
//   - by looking at the stacks of the bubble's goroutines from time to time;
//   - by the errors that the operator returns.

// reports has a function for each bubble, by the bubble's name. The hooks call it with their errors.
var reports sync.Map

// OnConnection sets the function that the hooks call before a goroutine of the current bubble opens a real connection. report is called on
// that goroutine. The hooks do not find every connection.
func OnConnection(report func(error)) { reports.Store(Name(), report) }

// WithHooks returns a context that calls the hooks when a connection is opened with it.
func WithHooks(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:  func(string) { _ = refuse() },
		DNSStart: func(httptrace.DNSStartInfo) { _ = refuse() },
		ConnectStart: func(string, string) {
			if _ = refuse(); strings.Contains(ownStack(), "net/http.(*Transport).dialConnFor(") {
				runtime.Goexit() // otherwise net/http would go on: it dials for later requests too
			}
		},
	})
}

// init makes http.DefaultTransport call refuse: the transport asks for the proxy on the caller's goroutine, before it opens a connection.
// Only test programs import this package, and nobody uses the transport yet when init runs.
func init() {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		proxy := t.Proxy
		t.Proxy = func(r *http.Request) (*url.URL, error) {
			if err := refuse(); err != nil || proxy == nil {
				return nil, err
			}
			return proxy(r)
		}
	}
}

// refuse reports that the current goroutine is about to open a connection, and returns the error. Outside of runs it returns nil.
func refuse() error {
	report, inRun := reports.Load(Name())
	if !inRun {
		return nil
	}
	err := connectionError(ownStack())
	report.(func(error))(err)
	return err
}

func ownStack() string {
	stack := make([]byte, 1<<16)
	return string(stack[:runtime.Stack(stack, false)])
}

const remedy = "A run happens in virtual time, which cannot wait for the real world. Put a fake in its place: an HTTP client gets the transport of " +
	"Process.RoundTripper, and other clients a fake that is Scenario.External and calls Process.Effect and Process.Query. What speaks to the API server takes Process.Config"

// connectionError returns the error for a goroutine that opens or uses a real connection. stack is the goroutine's stack.
func connectionError(stack string) error {
	called, at := callIn(stack)
	if at == "" {
		return fmt.Errorf("the operator opens a real connection: %s\n%s", called, remedy)
	}
	return fmt.Errorf("the operator opens a real connection: it calls %s at %s\n%s", called, at, remedy)
}

// Hint returns what to do about an error of a real connection. It returns "" for any other error.
func Hint(err error) string {
	_, failed := errors.AsType[*net.OpError](err)
	if _, unknown := errors.AsType[*net.DNSError](err); !failed && !unknown {
		return ""
	}
	return "\nThat is the error of a real connection. " + remedy
}

// warmUp makes package net create the values that it keeps for the whole program. Otherwise they would belong to the first bubble.
var warmUp = sync.OnceFunc(func() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = net.DefaultResolver.LookupHost(ctx, "localhost")
})

// The function hangs looks at the stacks every second. If a goroutine waits for the network at the third look in a row, hangs returns an
// error. So a run ends soon. A local connection that is opened and closed again is not found.
const (
	lookEvery = time.Second
	maxLooks  = 2
)

// hangs returns an error if a goroutine of the bubble waits for the network in several looks in a row. When ended is closed, it returns
// nil.
func hangs(bubble func() string, ended <-chan struct{}) error {
	seen := map[string]int{}
	for ticker := time.NewTicker(lookEvery); ; {
		select {
		case <-ended:
			ticker.Stop()
			return nil
		case <-ticker.C:
		}
		waiting := waitingForNetwork(bubble())
		now := map[string]int{}
		for id, stack := range waiting {
			if now[id] = seen[id] + 1; now[id] > maxLooks {
				ticker.Stop()
				return connectionError(stack)
			}
		}
		seen = now
	}
}

// waitingForNetwork returns the stacks of the bubble's goroutines that wait for the network. The keys are the names of the goroutines, such
// as "goroutine 7".
func waitingForNetwork(bubble string) map[string]string {
	found := map[string]string{}
	if bubble == "" {
		return found
	}
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		id, state, _ := strings.Cut(header, " [")
		if strings.Contains(header, bubble) && !strings.Contains(state, "(durable)") && !strings.HasPrefix(state, "run") && usesNetwork(frames) {
			found[id] = stack
		}
	}
	return found
}

// usesNetwork reports whether a function of package net is on a stack.
func usesNetwork(frames string) bool {
	return strings.HasPrefix(frames, "net.") || strings.Contains(frames, "\nnet.")
}

// callIn returns the function that the operator's own code calls on the stack, and the file and line of this call. If the stack has none of
// the operator's code, at is "", and called also says which function started the goroutine.
func callIn(stack string) (called, at string) {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		function, file := strings.TrimSpace(lines[i]), strings.TrimSpace(lines[i+1])
		file, _, _ = strings.Cut(file, " +")
		if by, isStart := strings.CutPrefix(function, "created by "); isStart {
			by, _, _ = strings.Cut(by, " in goroutine")
			return fmt.Sprintf("%s, on a goroutine that %s has started", called, by), ""
		}
		if isOwn(function, file) {
			return called, file[strings.LastIndex(file, "/")+1:]
		}
		if !strings.HasPrefix(function, simulated) {
			called = withoutArguments(function)
		}
	}
	return called, ""
}

const simulated = "github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/"

// isOwn reports whether a frame of a stack is the operator's own code: neither the standard library, nor a module that it requires.
func isOwn(function, file string) bool {
	return !strings.HasPrefix(file, standardLibrary()) && !strings.Contains(file, "@v") && !strings.Contains(file, "/vendor/") &&
		(!strings.HasPrefix(function, simulated) || strings.HasSuffix(file[:strings.LastIndex(file, ":")+1], "_test.go:")) && !strings.HasPrefix(function, "panic(")
}

// standardLibrary returns the folder of the standard library's sources as stack traces name it.
var standardLibrary = sync.OnceValue(func() string {
	for stack := range strings.SplitSeq(ownStack(), "\n") {
		if before, _, isSync := strings.Cut(strings.TrimSpace(stack), "sync/oncefunc.go:"); isSync {
			return before
		}
	}
	return "/"
})

// withoutArguments returns a function of a stack trace without its arguments.
func withoutArguments(function string) string {
	if i := strings.LastIndex(function, "("); i > 0 {
		return function[:i]
	}
	return function
}
