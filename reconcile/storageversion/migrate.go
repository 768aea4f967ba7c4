package storageversion

import (
	"fmt"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// defaultRate is how many objects are written in a second, at most.
const defaultRate = 50

// Option is an option of [Migrate].
type Option func(*migrator)

// Rate sets the largest number of objects that are written in a second. The default is 50. 0 or less means no limit. The limit of the
// manager's client applies too.
func Rate(objects float64) Option {
	return func(m *migrator) {
		m.limiter = rate.NewLimiter(rate.Limit(objects), 1)
		if objects <= 0 {
			m.limiter = rate.NewLimiter(rate.Inf, 1)
		}
	}
}

// Migrate adds the storage migration of a kind to a manager. It runs on the leader, as long as the manager runs, like the controllers. The
// object is an empty object of any version of the kind that the manager's scheme knows, such as &cachev1.Memcached{}.
//
// It returns an error if the scheme does not know the type of the object, or if only some of its versions have a conversion. It sends no
// request. If the CustomResourceDefinition or a permission is missing, the migration logs that after the start, and tries again.
func Migrate(mgr manager.Manager, object client.Object, options ...Option) error {
	kind, err := apiutil.GVKForObject(object, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("migrate stored objects: register the type %T in the manager's scheme: %w", object, err)
	}
	conversions, err := conversionsOf(mgr, object, kind.GroupKind())
	if err != nil {
		return err
	}
	metrics, err := newMetrics(ctrlmetrics.Registry, kind.GroupKind().String())
	if err != nil {
		return fmt.Errorf("migrate stored objects of kind %s: %w", kind.Kind, err)
	}
	m := &migrator{
		kind: kind.GroupKind(), mapper: mgr.GetRESTMapper(), reader: mgr.GetAPIReader(), writer: mgr.GetClient(),
		log:   mgr.GetLogger().WithName("storageversion").WithValues("kind", kind.GroupKind().String()),
		clock: clock.RealClock{}, metrics: metrics, conversions: conversions, settle: settleTime, pause: pauseTime, pageSize: defaultPageSize,
	}
	Rate(defaultRate)(m)
	for _, option := range options {
		option(m)
	}
	return mgr.Add(m)
}
