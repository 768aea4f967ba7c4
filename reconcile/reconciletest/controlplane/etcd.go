package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
)

// startEtcd starts etcd. It listens on unix sockets, so it needs no free port.
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
		"--unsafe-no-fsync", // the data may be lost in a power failure
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	return p.wait(ctx, etcd, p.etcdReady)
}

// SaveEtcd copies etcd's data for [ControlPlane.RestoreEtcd]. To do so it kills etcd and starts it again. It returns when the API server is
// ready. A later copy replaces the earlier one.
func (cp *ControlPlane) SaveEtcd(ctx context.Context) error {
	p := &cp.processes
	if err := p.rerunAfter(etcd, func() error { return replaceFolder(p.file(etcdCopy), p.file("etcd")) }); err != nil {
		return err
	}
	return p.wait(ctx, apiserver, cp.apiServerReady)
}

// RestoreEtcd restores all objects as they were at the last [ControlPlane.SaveEtcd], like an administrator who restores a backup. It kills
// the controllers, kube-apiserver and etcd, replaces etcd's data, and starts all again: no controller writes to the restored objects what it
// knows from later. Leases of nodes are not restored, so that the simulated nodes work at once. It returns when the API server is ready.
// Objects created since then are gone, deleted ones are back, and later changes get resource versions that were used before. First stop
// clients that cache objects, such as operators. Otherwise their watches show no change until the resource versions have grown beyond the
// ones that they have seen.
func (cp *ControlPlane) RestoreEtcd(ctx context.Context) error {
	p := &cp.processes
	if _, err := os.Stat(p.file(etcdCopy)); err != nil {
		return fmt.Errorf("there is no copy of etcd's data: call SaveEtcd first: %w", err)
	}
	writing := []string{apiserver}
	if cp.options.hasControllers() {
		writing = append(slices.Clone(controllers), apiserver)
	}
	for _, name := range writing {
		if err := p.process(name).Kill(); err != nil {
			return err
		}
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
	return cp.startControllersAgain(ctx)
}

// etcdCopy is the folder with a copy of etcd's data.
const etcdCopy = "etcd-copy"

// replaceFolder replaces a folder by a copy of another one.
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
