package main

import (
	"net"
	"sync"
	"time"
)

// proxy forwards TCP connections, and can delay, block and reset them.
type proxy struct {
	listener net.Listener
	upstream string
	wg       sync.WaitGroup

	mu          sync.Mutex
	delay       time.Duration // how long each chunk is held up
	silent      chan struct{} // closed when the silence ends; nil without silence
	closed      bool
	connections map[net.Conn]struct{}
}

func newProxy(upstream string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, upstream: upstream, connections: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = down.Close()
			continue
		}
		if !p.add(down, up) {
			return
		}
		p.wg.Go(func() { p.pass(down, up) })
		p.wg.Go(func() { p.pass(up, down) })
	}
}

func (p *proxy) add(connections ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		if p.closed {
			_ = c.Close()
		} else {
			p.connections[c] = struct{}{}
		}
	}
	return !p.closed
}

// pass copies data in one direction until either side closes, and closes both.
func (p *proxy) pass(to, from net.Conn) {
	defer p.drop(to, from)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.hold()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits for the end of the delay or of the silence.
func (p *proxy) hold() {
	p.mu.Lock()
	delay, silent := p.delay, p.silent
	p.mu.Unlock()
	if silent != nil {
		<-silent
	}
	time.Sleep(delay)
}

func (p *proxy) drop(connections ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		_ = c.Close()
		delete(p.connections, c)
	}
}

// reset resets all connections.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.connections {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// slow sets the delay of each chunk.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// silence blocks all data until the returned function is called.
func (p *proxy) silence() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	silent := make(chan struct{})
	p.silent = silent
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.silent = nil
		close(silent)
	}
}

func (p *proxy) stop() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.reset()
	p.wg.Wait()
	return err
}
