package main

import (
	"flag"
	"net"
	"strconv"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile/storageversion"
)

// webhooks are the options of the server for webhooks. There is none without a folder with its certificate.
var webhooks webhook.Options

func init() {
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
	flag.StringVar(&webhooks.CertDir, "webhook-cert-dir", "", "Folder with tls.crt and tls.key for webhooks; read again when they change. Default: no webhooks are served.")
	flag.Func("webhook-bind-address", "Address of the webhooks, which are served by HTTPS. Default: :9443.", func(address string) error {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		webhooks.Host = host
		webhooks.Port, err = strconv.Atoi(port)
		return err
	})
}

// webhookServer returns the server for webhooks, or nil.
func webhookServer() webhook.Server {
	if webhooks.CertDir == "" {
		return nil
	}
	return webhook.NewServer(webhooks)
}

// serveConversion adds the conversion between v1 and v1alpha1 to the manager. Every replica serves it, also one that does not lead. The
// replica that leads migrates what is stored.
//
// The API server calls it to answer the manager's cache, and it calls only replicas that are ready. So a replica is ready as soon as it
// serves: if it waited for its cache, as reconcile.NewManager has it, neither would ever come.
func serveConversion(mgr ctrl.Manager) error {
	if webhooks.CertDir == "" {
		return nil
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &cachev1.Memcached{}).Complete(); err != nil {
		return err
	}
	if err := storageversion.Migrate(mgr, &cachev1.Memcached{}); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}
