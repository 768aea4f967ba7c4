package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor/internal/server"
)

const tailSize = 4 << 10

// Process is a program that the supervisor runs.
type Process struct {
	supervisor *Supervisor
	name, log  string
	pid        int

	exited sync.Once
	status string
	done   chan struct{}
}

// PID returns the program's process id.
func (p *Process) PID() int { return p.pid }

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill kills the program, as kill -9 does, and returns when it has ended.
func (p *Process) Kill() error {
	if _, err := p.supervisor.ask(server.Request{Kill: p.pid}); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// Suspend suspends the program, as kill -STOP does, and returns when it has stopped. Processes that it started go on. A suspended
// program keeps its files and connections, and can be killed. Suspend does nothing if the program is suspended already. It returns
// an error if the program has ended.
func (p *Process) Suspend() error {
	if _, err := p.supervisor.ask(server.Request{Suspend: p.pid}); err != nil {
		return fmt.Errorf("suspend %s: %w", p.name, err)
	}
	return nil
}

// Resume makes a suspended program go on. It does nothing if the program is not suspended. It returns an error if the program has
// ended.
func (p *Process) Resume() error {
	if _, err := p.supervisor.ask(server.Request{Resume: p.pid}); err != nil {
		return fmt.Errorf("resume %s: %w", p.name, err)
	}
	return nil
}

// Err returns how the program ended, with the last lines of its log. It returns nil while the program runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %s; the last lines of %s:\n%s", p.name, p.status, p.log, p.Tail())
	default:
		return nil
	}
}

// Tail returns the last lines of the program's log, up to 4 KiB.
func (p *Process) Tail() []byte {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	if len(content) > tailSize {
		content = content[len(content)-tailSize:]
		content = content[bytes.IndexByte(content, '\n')+1:]
	}
	return bytes.TrimSpace(content)
}

func (p *Process) exit(status string) {
	p.exited.Do(func() {
		p.status = status
		close(p.done)
	})
}
