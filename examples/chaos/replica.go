package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// replica is one of two processes of an operator.
type replica struct {
	cluster *cluster
	name    string
	binary  string
	args    []string
	starts  int
	process *supervisor.Process
}

// start starts the process, as a Deployment would start its container again.
func (r *replica) start() (err error) {
	r.starts++
	r.process, err = r.cluster.cp.Run(r.id(), r.binary, r.args...)
	return err
}

// id names the current process of the replica, and its log.
func (r *replica) id() string { return fmt.Sprintf("%s-operator-%d", r.name, r.starts) }

// leads reports whether the replica is the leader, according to its log.
func (r *replica) leads() bool {
	log, err := os.ReadFile(filepath.Join(r.cluster.folder(), r.id()+".log"))
	return err == nil && bytes.Contains(log, []byte("uccessfully acquired lease")) && r.process.Err() == nil
}

// kill ends the process as kill -9 does.
func (r *replica) kill() error { return r.process.Kill() }
