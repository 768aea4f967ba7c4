// Memcached is the operator of kind Memcached.
package main

import (
	"errors"
	"flag"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1.AddToScheme(scheme))
}

func main() {
	metricsAddress := flag.String("metrics-bind-address", ":8443", "Address of the metrics endpoint, which serves HTTPS; 0 disables it.")
	authorize := flag.Bool("metrics-authorization", true, "Serve metrics only to users that may get the URL /metrics; the API server is asked.")
	probeAddress := flag.String("health-probe-bind-address", ":8081", "Address of the health probes; 0 disables them.")
	leaderElect := flag.Bool("leader-elect", false, "Elect a leader, so that only one of several replicas works at a time.")
	leaseNamespace := flag.String("leader-election-namespace", "", "Namespace of the leader's lease. Default: that of the pod.")
	var namespaces []string
	flag.Func("namespaces", "Namespaces to watch, separated by commas. Default: all.", func(value string) error {
		namespaces = append(namespaces, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
		return nil
	})
	plan := flag.String("plan", "", "Print what this version would change in the cluster, as text, json or markdown, and exit: 0 nothing, 3 changes, 1 an error.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(*plan, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controller.Cache(namespaces...),
		Metrics:                       metricsOptions(*metricsAddress, *authorize),
		HealthProbeBindAddress:        *probeAddress,
		WebhookServer:                 webhookServer(),
		Controller:                    config.Controller{EnableWarmup: new(true)}, // a replica that waits to lead has its caches filled
		LeaderElection:                *leaderElect,
		LeaderElectionID:              "memcached.cache.example.com",
		LeaderElectionNamespace:       *leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
	}); errors.Is(err, upgrade.ErrChanges) {
		os.Exit(3)
	} else if err != nil {
		ctrl.Log.Error(err, "The operator cannot run")
		os.Exit(1)
	}
}

func run(plan string, options ctrl.Options) error {
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	if plan != "" {
		return upgrade.Plan(ctrl.SetupSignalHandler(), access, options, controller.SetupWithManager, os.Stdout, upgrade.Options{Format: plan})
	}
	mgr, err := reconcile.NewManager(access, options)
	if err != nil {
		return err
	}
	if err := controller.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := serveConversion(mgr); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil { // reconcile.NewManager has added /readyz
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
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
