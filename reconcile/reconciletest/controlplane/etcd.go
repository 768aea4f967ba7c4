package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
)

// startEtcd starts etcd, which listens on unix sockets: it needs no free port.
func (p *processes) startEtcd(ctx context.Context) error {
	const advertised = "unix://localhost:0" // nobody uses it, but etcd requires a URL with a port
	err := p.run(etcd,
		"--name=etcd",
		"--data-dir="+p.file("etcd"),
		"--listen-client-urls=unix://"+p.file("etcd.sock"),
		"--advertise-client-urls="+advertised,
		"--listen-peer-urls=unix://"+p.file("peer.sock"),
		"--initial-advertise-peer-urls="+advertised,
		"--initial-cluster=etcd="+advertised,
		"--unsafe-no-fsync", // the data need not survive a power failure
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	return p.wait(ctx, etcd, p.etcdReady)
}

// SaveEtcd keeps a copy of etcd's data for [ControlPlane.RestoreEtcd]. It kills etcd for that and starts it again, and returns when the API
// server is ready. A later copy replaces the former one.
func (cp *ControlPlane) SaveEtcd(ctx context.Context) error {
	p := &cp.processes
	if err := p.rerunAfter(etcd, func() error { return replaceFolder(p.file(etcdCopy), p.file("etcd")) }); err != nil {
		return err
	}
	return p.wait(ctx, apiserver, cp.apiServerReady)
}

// RestoreEtcd brings all objects back as they were at the last [ControlPlane.SaveEtcd], as an administrator restores a backup: it kills
// kube-apiserver and etcd, replaces etcd's data, and starts both and the controllers again. It returns when the API server is ready.
// Objects created since are gone, deleted ones are back, and later changes have the same resource versions once more. Stop other clients
// that cache objects before, such as operators: until the resource versions have caught up, no watch of theirs shows a change.
func (cp *ControlPlane) RestoreEtcd(ctx context.Context) error {
	p := &cp.processes
	if _, err := os.Stat(p.file(etcdCopy)); err != nil {
		return fmt.Errorf("there is no copy of etcd's data: call SaveEtcd first: %w", err)
	}
	if err := p.process(apiserver).Kill(); err != nil {
		return err
	}
	if err := p.rerunAfter(etcd, func() error { return replaceFolder(p.file("etcd"), p.file(etcdCopy)) }); err != nil {
		return err
	}
	if err := p.wait(ctx, etcd, p.etcdReady); err != nil {
		return err
	}
	if err := p.startAgain(apiserver); err != nil {
		return err
	}
	if err := p.wait(ctx, apiserver, cp.apiServerReady); err != nil || !cp.options.hasControllers() {
		return err
	}
	return errors.Join(p.rerun(controllerManager), p.rerun(scheduler), p.rerun(kwok))
}

// etcdCopy is the folder with a copy of etcd's data.
const etcdCopy = "etcd-copy"

// replaceFolder makes a folder a copy of another one.
func replaceFolder(folder, of string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.CopyFS(folder, os.DirFS(of))
}

func (p *processes) etcdReady(ctx context.Context) error {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", p.file("etcd.sock"))
	if err != nil {
		return err
	}
	return connection.Close()
}
