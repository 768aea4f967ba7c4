package operatortest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// EachManagerOption calls run in a subtest for each option of controller-runtime with which an operator must work as by default,
// and for the default. By default controller-runtime uses its priority queue.
func EachManagerOption(t *testing.T, run func(t *testing.T, options ctrl.Options)) {
	all := map[string]ctrl.Options{
		"Default":              {},
		"Warmup":               {Controller: config.Controller{EnableWarmup: new(true)}},
		"WithoutPriorityQueue": {Controller: config.Controller{UsePriorityQueue: new(false)}},
	}
	cache := &client.CacheOptions{}
	if option := reflect.ValueOf(cache).Elem().FieldByName("EnableReadYourWritesConsistency"); option.IsValid() { // since controller-runtime v0.25
		option.Set(reflect.ValueOf(new(true)))
		all["ReadYourWrites"] = ctrl.Options{Client: client.Options{Cache: cache}}
	}
	for name, options := range all {
		t.Run(name, func(t *testing.T) {
			run(t, options) // a test that is skipped ends here
			if options.Client.Cache != nil {
				assert.Positive(t, consistentReads(t), "no read waited for writes: the option is not in effect")
			}
		})
	}
}

// consistentReads returns the number of reads of this process that waited until the cache showed the writes before them.
func consistentReads(t *testing.T) (reads uint64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "controller_runtime_client_consistency_wait_duration_seconds" {
			for _, m := range family.GetMetric() {
				reads += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return reads
}

// ElectLeader returns the options with an election of a leader, if they warm up, which matters only then. The lease is in the
// user's namespace.
func (u *User) ElectLeader(options ctrl.Options) ctrl.Options {
	if options.Controller.EnableWarmup == nil {
		return options
	}
	elected := electLeader(u.Namespace, "operator")
	elected.Controller = options.Controller
	return elected
}

// electLeader returns manager options for a leader election whose lease does not expire on a busy machine.
func electLeader(namespace, lease string) ctrl.Options {
	return ctrl.Options{
		LeaderElection: true, LeaderElectionNamespace: namespace, LeaderElectionID: lease, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(2 * Patience), RenewDeadline: new(Patience),
	}
}
