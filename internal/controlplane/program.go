package controlplane

import "github.com/opblocks/opblocks/internal/controlplane/supervisor"

// Run runs another program, such as an operator, that ends when the control plane ends. It gets the name's log in the
// control plane's folder.
func (cp *ControlPlane) Run(name, path string, args ...string) (*supervisor.Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.launch(supervisor.Command{Name: name, Path: path, Args: args}); err != nil {
		return nil, err
	}
	return cp.running[name].process, nil
}
