package controlplane

import (
	"context"
	"net"
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

func (p *processes) etcdReady(ctx context.Context) error {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", p.file("etcd.sock"))
	if err != nil {
		return err
	}
	return connection.Close()
}
