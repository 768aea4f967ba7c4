package bubble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCallIn(t *testing.T) {
	tests := map[string]struct {
		reason     string
		stack      string
		called, at string
	}{
		"OwnCode": {
			reason: "the driver is a module that the operator requires",
			stack: `goroutine 7 [IO wait, synctest bubble 3]:
internal/poll.runtime_pollWait(0x1, 0x2)
	GOROOT/runtime/netpoll.go:351 +0x85
net.(*Dialer).DialContext(0x1, {0x2, 0x3})
	GOROOT/net/dial.go:650 +0x1
github.com/go-sql-driver/mysql.(*connector).Connect(0x1)
	/home/me/go/pkg/mod/github.com/go-sql-driver/mysql@v1.9.0/connector.go:100 +0x2
database/sql.(*DB).Ping(...)
	GOROOT/database/sql/sql.go:900
example.com/operator/controllers.(*Reconciler).Reconcile(0x1)
	/home/me/operator/controllers/database.go:42 +0x3
created by sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller).Start in goroutine 5
	/home/me/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.25.2/pkg/internal/controller/controller.go:1 +0x4`,
			called: "database/sql.(*DB).Ping", at: "database.go:42",
		},
		"Hook": {
			reason: "frames of the simulation are neither called nor the operator's",
			stack: `goroutine 7 [running, synctest bubble 3]:
github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble.refuse()
	/home/me/opblocks/reconcile/reconciletest/internal/simulation/bubble/connection.go:80 +0x1
net/http.Get(...)
	GOROOT/net/http/client.go:400
main.run(0x1)
	/home/me/operator/main.go:9 +0x3`,
			called: "net/http.Get", at: "main.go:9",
		},
		"NoOwnCode": {
			reason: "the goroutine was started by the standard library",
			stack: `goroutine 7 [IO wait, synctest bubble 3]:
net/http.(*persistConn).readLoop(0x1)
	GOROOT/net/http/transport.go:2100 +0x1
created by net/http.(*Transport).dialConn in goroutine 5
	GOROOT/net/http/transport.go:1700 +0x4`,
			called: "net/http.(*persistConn).readLoop, on a goroutine that net/http.(*Transport).dialConn has started",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			called, at := callIn(strings.ReplaceAll(tc.stack, "GOROOT/", standardLibrary()))
			assert.Equal(t, tc.called, called, tc.reason)
			assert.Equal(t, tc.at, at, tc.reason)
		})
	}
}

// A goroutine that waits for the network would keep the virtual clock from moving for ever. Run returns, and its error says where the
// goroutine waits.
func TestRunEndsWhenAConnectionHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is at once there
	require.NoError(t, err)
	t.Run("Run", func(t *testing.T) {
		ending := Run(t, func(*testing.T) {
			c, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // operators do that
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		})
		require.ErrorContains(t, ending.Hung, "it calls net.(*conn).Read at connection_test.go:")
	})
	require.NoError(t, listener.Close())
	for stacks := make([]byte, 1<<20); strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "synctest bubble"); {
		runtime.Gosched() // the connection ends when the listener is closed
	}
}

// The values that package net keeps for the program must not belong to the first bubble. Otherwise the second bubble would crash the
// program.
func TestLookupsOfTwoBubbles(t *testing.T) {
	for range 2 {
		ending := Run(t, func(*testing.T) { _, _ = net.LookupHost("localhost") }) //nolint:noctx // operators do that
		require.NoError(t, ending.Hung)
	}
}

// Each hook reports to the function of its own bubble, on the goroutine that opens the connection.
func TestHooksReport(t *testing.T) {
	var reported error
	ending := Run(t, func(*testing.T) {
		ctx, cancel := context.WithCancel(WithHooks(context.Background()))
		OnConnection(func(err error) {
			reported = err
			cancel()
		})
		_, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:1")
		assert.Error(t, err)
	})
	require.NoError(t, ending.Hung)
	require.ErrorContains(t, reported, "it calls net.(*Dialer).DialContext at connection_test.go:")
}

func TestHint(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Dial":   {reason: "a connection failed", err: fmt.Errorf("ping: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), want: true},
		"Lookup": {reason: "a name was not found", err: &net.DNSError{Name: "db"}, want: true},
		"Fault":  {reason: "the faults of the network are none of a real one", err: fmt.Errorf("query: %w", syscall.ECONNREFUSED)},
		"Other":  {reason: "it has nothing to do with the network", err: errors.New("no")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, Hint(tc.err) != "", tc.reason) })
	}
}
