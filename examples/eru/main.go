// Eru is the operator of kind Eru.
package main

import (
	"flag"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/reconcile"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(eruv1.AddToScheme(scheme))
}

func main() {
	metricsAddress := flag.String("metrics-bind-address", ":8443", "Address of the metrics endpoint, which speaks HTTPS; 0 for none.")
	probeAddress := flag.String("health-probe-bind-address", ":8081", "Address of the probes; 0 for none.")
	atOnce := flag.Int("max-concurrent-restarts", 0, "How many Deployments may roll out at once because of this operator; 0 is no limit.")
	leaderElect := flag.Bool("leader-elect", false, "Let one of several replicas work at a time.")
	leaseNamespace := flag.String("leader-election-namespace", "", "Namespace of the replicas' lease; the pod's own if empty.")
	var namespaces []string
	flag.Func("namespaces", "Namespaces to work in, separated by commas; all if empty.", func(value string) error {
		namespaces = append(namespaces, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
		return nil
	})
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	lateness := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "eru_restart_lateness_seconds", Help: "How long after its place in the spread a restart comes.",
		Buckets: prometheus.ExponentialBuckets(0.01, 4, 10), // 10 ms to 44 minutes
	})
	metrics.Registry.MustRegister(lateness)
	if err := run(restarts.Restarts{Clock: clock.RealClock{}, AtOnce: *atOnce, Lateness: lateness}, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controller.Cache(namespaces...),
		Metrics:                       metricsserver.Options{BindAddress: *metricsAddress, SecureServing: true},
		HealthProbeBindAddress:        *probeAddress,
		LeaderElection:                *leaderElect,
		LeaderElectionID:              "eru.mtsre.meitu.com",
		LeaderElectionNamespace:       *leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
	}); err != nil {
		ctrl.Log.Error(err, "The operator cannot run")
		os.Exit(1)
	}
}

func run(r restarts.Restarts, options ctrl.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := reconcile.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := controller.SetupWithManager(mgr, r); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
