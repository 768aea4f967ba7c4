// Databaseuser is the operator of kind DatabaseUser.
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(userv1alpha1.AddToScheme(scheme))
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
	target := flag.String("target", "", `Serve the DatabaseUsers whose label "target" has this value, ignoring case; required.`)
	resync := flag.Duration("resync", 10*time.Minute, "Interval at which accounts are compared with the spec and repaired.")
	var db database
	flag.StringVar(&db.address, "database-address", "", "Host and port of the database; required.")
	flag.StringVar(&db.credentials, "database-credentials", "/etc/database", `Folder with the files "username" and "password", such as a mounted Secret.`)
	flag.StringVar(&db.authorities, "database-ca", "", "File with the CA certificates that the database's certificate is verified with. Without it the connection is not encrypted.")
	plan := flag.String("plan", "", "Print what this version would change in the cluster, as text, json or markdown, and exit: 0 nothing, 3 changes, 1 an error.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(*plan, &controller.Operator{Target: *target, Resync: *resync}, db, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controller.Cache(namespaces...),
		Metrics:                       metricsOptions(*metricsAddress, *authorize),
		HealthProbeBindAddress:        *probeAddress,
		Controller:                    config.Controller{EnableWarmup: new(true)}, // a replica that waits to lead has its caches filled
		LeaderElection:                *leaderElect,
		LeaderElectionID:              leaseName(*target),
		LeaderElectionNamespace:       *leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
	}); errors.Is(err, upgrade.ErrChanges) {
		os.Exit(3)
	} else if err != nil {
		ctrl.Log.Error(err, "The operator cannot run")
		os.Exit(1)
	}
}

func run(plan string, operator *controller.Operator, db database, options ctrl.Options) error {
	if err := checkTarget(operator.Target); err != nil {
		return err
	}
	if db.address == "" || operator.Resync <= 0 {
		return errors.New("give --database-address, and a --resync that is more than 0")
	}
	client, err := db.open()
	if err != nil {
		return err
	}
	defer client.Close()
	operator.Database = client
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	if plan != "" {
		return upgrade.Plan(ctrl.SetupSignalHandler(), access, options, operator.SetupWithManager, os.Stdout, upgrade.Options{Format: plan})
	}
	mgr, err := reconcile.NewManager(access, options)
	if err != nil {
		return err
	}
	if err := operator.SetupWithManager(mgr); err != nil {
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
