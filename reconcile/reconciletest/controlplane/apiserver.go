package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	loopback = "127.0.0.1"

	// serviceRange is the largest range that the API server allows. The default of envtest is full after 254 Services.
	serviceRange   = "10.96.0.0/12"
	serviceAddress = "10.96.0.1" // the address of the API server's own Service

	startAttempts = 5
)

// startAPIServer starts kube-apiserver on a free port. It tries another port if another program has taken this one, or if kube-apiserver
// has ended because it had too little time on a busy machine.
func (cp *ControlPlane) startAPIServer(ctx context.Context) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	if err := cp.processes.writeCertificates(ca); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err := cp.connect(ca, port); err != nil {
			return err
		}
		if err := cp.processes.run(apiserver, cp.apiServerArgs(port)...); err != nil {
			return err
		}
		if err = cp.processes.wait(ctx, apiserver, cp.apiServerReady); err == nil || attempt == startAttempts || !mayStartLater(cp.processes.process(apiserver).Tail()) {
			return err
		}
	}
}

// mayStartLater reports whether another attempt to start kube-apiserver may succeed. It looks at the log of the failed attempt: the port
// was taken, or a start hook failed. The hook that allocates addresses fails if it does not finish within a minute.
func mayStartLater(log []byte) bool {
	return bytes.Contains(log, []byte("address already in use")) || bytes.Contains(log, []byte("PostStartHook"))
}

func (p *processes) writeCertificates(ca *authority) error {
	serving, err := ca.server(net.ParseIP(loopback), net.ParseIP(serviceAddress))
	if err != nil {
		return err
	}
	_, serviceAccountKey, err := newKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt": ca.bundle(), "apiserver.crt": serving.certificate, "apiserver.key": serving.key,
		"serviceaccount.key": serviceAccountKey,
	} {
		if err := p.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

func (cp *ControlPlane) apiServerArgs(port int) []string {
	args := []string{
		"--etcd-servers=unix://" + cp.processes.file("etcd.sock"),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		"--token-auth-file=" + cp.processes.file("tokens.csv"),
		"--tls-cert-file=" + cp.processes.file("apiserver.crt"),
		"--tls-private-key-file=" + cp.processes.file("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.processes.file("serviceaccount.key"),
		"--service-account-signing-key-file=" + cp.processes.file("serviceaccount.key"),
		"--endpoint-reconciler-type=none", // no node could reach an address on this machine's loopback interface
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--profiling=false",
	}
	if !cp.options.hasControllers() {
		// Without the controller manager nothing creates default ServiceAccounts, and this plug-in would reject every pod.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return append(args, cp.options.APIServerArgs...)
}

func (cp *ControlPlane) apiServerReady(ctx context.Context) error {
	http, err := rest.HTTPClientFor(cp.admin)
	if err != nil {
		return err
	}
	raw, err := rest.UnversionedRESTClientForConfigAndClient(rawConfig(cp.admin), http)
	if err != nil {
		return err
	}
	if err := raw.Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	if cp.client == nil {
		if cp.client, err = client.New(withoutWarnings(cp.admin), client.Options{HTTPClient: http}); err != nil {
			return err
		}
	}
	return cp.client.Get(ctx, client.ObjectKey{Name: corev1.NamespaceDefault}, &corev1.Namespace{})
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
