// Eru is the operator of kind Eru.
package main

import (
	"errors"
	"flag"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/examples/eru/webhooks"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(eruv1.AddToScheme(scheme))
}

func main() {
	metricsAddress := flag.String("metrics-bind-address", ":8443", "Address of the metrics endpoint, which serves HTTPS; 0 disables it.")
	authorize := flag.Bool("metrics-authorization", true, "Serve metrics only to users that may get the URL /metrics; the API server is asked.")
	probeAddress := flag.String("health-probe-bind-address", ":8081", "Address of the health probes; 0 disables them.")
	webhookCertDir := flag.String("webhook-cert-dir", "", "Folder with tls.crt and tls.key for webhooks; read again when they change. Default: no webhooks are served.")
	leaderElect := flag.Bool("leader-elect", false, "Elect a leader, so that only one of several replicas works at a time.")
	leaseNamespace := flag.String("leader-election-namespace", "", "Namespace of the leader's lease. Default: that of the pod.")
	var namespaces []string
	flag.Func("namespaces", "Namespaces to watch, separated by commas. Default: all.", func(value string) error {
		namespaces = append(namespaces, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
		return nil
	})
	maxConcurrent := flag.Int("max-concurrent-restarts", 0, "Maximum number of Deployments that roll out at a time because of this operator; 0 means no limit.")
	minInterval := flag.Duration("min-interval", time.Minute, "Shortest interval that a schedule may have, and shortest time between two restarts of a Deployment, since each replaces all its pods; 0 means no limit.")
	plan := flag.String("plan", "", "Print what this version would change in the cluster, as text, json or markdown, and exit: 0 nothing, 3 changes, 1 an error.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	lateness := restarts.NewLateness()
	metrics.Registry.MustRegister(lateness)
	settings := restarts.Restarts{Clock: clock.RealClock{}, MaxConcurrent: *maxConcurrent, MinInterval: *minInterval, Lateness: lateness}
	if err := run(*plan, settings, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controller.Cache(namespaces...),
		Metrics:                       metricsOptions(*metricsAddress, *authorize),
		HealthProbeBindAddress:        *probeAddress,
		WebhookServer:                 webhookServer(*webhookCertDir),
		Controller:                    config.Controller{EnableWarmup: new(true)}, // a replica that waits to lead has its caches filled
		LeaderElection:                *leaderElect,
		LeaderElectionID:              "eru.mtsre.meitu.com",
		LeaderElectionNamespace:       *leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
	}); errors.Is(err, upgrade.ErrChanges) {
		os.Exit(3)
	} else if err != nil {
		ctrl.Log.Error(err, "The operator cannot run")
		os.Exit(1)
	}
}

func run(plan string, r restarts.Restarts, options ctrl.Options) error {
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	if plan != "" {
		return upgrade.Plan(ctrl.SetupSignalHandler(), access, options, func(mgr ctrl.Manager) error { return controller.SetupWithManager(mgr, r) }, os.Stdout, upgrade.Options{Format: plan})
	}
	mgr, err := reconcile.NewManager(access, options)
	if err != nil {
		return err
	}
	if err := controller.SetupWithManager(mgr, r); err != nil {
		return err
	}
	if options.WebhookServer != nil {
		if err := serveWebhooks(mgr, r.MinInterval); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil { // reconcile.NewManager has added /readyz
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// webhookServer returns a server for webhooks on port 9443, or nil without a folder for its certificate.
func webhookServer(certDir string) webhook.Server {
	if certDir == "" {
		return nil
	}
	return webhook.NewServer(webhook.Options{CertDir: certDir})
}

// serveWebhooks adds the webhooks to the manager, which is not ready before they are served.
func serveWebhooks(mgr ctrl.Manager, minInterval time.Duration) error {
	if err := webhooks.SetupWithManager(mgr, minInterval); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}

// metricsOptions returns options to serve metrics by HTTPS, with a certificate that is made at the start. To authorize users, the
// operator may create TokenReviews and SubjectAccessReviews: config/metrics.
func metricsOptions(address string, authorize bool) metricsserver.Options {
	options := metricsserver.Options{BindAddress: address, SecureServing: true}
	if authorize {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
