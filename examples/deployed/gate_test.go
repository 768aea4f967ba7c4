//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gate forwards connections to another port of this machine while it is open. It is closed at first: connections break.
type gate struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu          sync.Mutex
	opened      bool
	connections []net.Conn
}

func newGate(t *testing.T, port string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{listener: listener, target: net.JoinHostPort("127.0.0.1", port)}
	g.running.Go(g.accept)
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		g.shut()
		g.running.Wait()
	})
	return g
}

func (g *gate) port() string { return strconv.Itoa(g.listener.Addr().(*net.TCPAddr).Port) }

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = true
}

// shut closes the gate, and breaks the connections that it has forwarded.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = false
	for _, c := range g.connections {
		_ = c.Close() // the other side may have closed it
	}
	g.connections = nil
}

func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.running.Go(func() { g.forward(client) })
	}
}

func (g *gate) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer server.Close()
	g.mu.Lock()
	opened := g.opened
	if opened {
		g.connections = append(g.connections, client, server)
	}
	g.mu.Unlock()
	if !opened {
		return
	}
	g.running.Go(func() {
		_, _ = io.Copy(server, client) // until one side closes the connection
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
}
