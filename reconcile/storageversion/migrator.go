package storageversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// settleTime is how long a CustomResourceDefinition has to be unchanged before its objects are written. Each replica of the API server
	// learns of a change by a watch, and stores objects in the former version until then. The API server itself waits 5 seconds before it
	// serves a new CustomResourceDefinition, for the same reason (apiextensions-apiserver, pkg/controller/establish).
	settleTime = 5 * time.Second

	// idle is the time between two reads of a CustomResourceDefinition that does not need a migration.
	idle = 10 * time.Minute

	// clusterInterval is the time between two reads of the StorageVersionMigration while the cluster migrates.
	clusterInterval = 5 * time.Second

	// soon is the delay between two steps that follow each other.
	soon = time.Second

	// pauseTime is the delay before a request of a walk is repeated.
	pauseTime = time.Second
)

// migrator migrates the objects of one kind. It is added to the manager as a runnable.
type migrator struct {
	kind    schema.GroupKind
	mapper  meta.RESTMapper
	reader  client.Reader // reads from the API server, not from the cache
	writer  client.Client
	log     logr.Logger
	clock   clock.Clock
	metrics *metrics
	limiter *rate.Limiter

	conversions conversions
	settle      time.Duration
	pause       time.Duration
	pageSize    int64

	seen   seen
	walked seen
	left   leftover
	alone  bool // Kubernetes' own migration is not used, although the cluster serves it
}

// seen identifies a state of a CustomResourceDefinition, except its status.
type seen struct {
	uid        types.UID
	generation int64
}

func seenOf(crd *apiextensionsv1.CustomResourceDefinition) seen { return seen{crd.UID, crd.Generation} }

// NeedLeaderElection returns true: one replica is enough.
func (m *migrator) NeedLeaderElection() bool { return true }

// Start migrates until the context ends. It logs an error, and tries the migration again after 5 seconds to 10 minutes.
func (m *migrator) Start(ctx context.Context) error {
	first := wait.Backoff{Duration: 5 * time.Second, Factor: 2, Steps: 20, Cap: idle}
	backoff := first
	for {
		delay, err := m.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errChanged):
			delay = soon
		case err != nil:
			delay = backoff.Step()
			m.log.Error(explain(err), "Cannot migrate the stored objects yet", "retryAfter", delay.String())
		default:
			backoff = first
		}
		timer := m.clock.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// explain adds to an error about a missing permission what to do about it.
func explain(err error) error {
	if lacksRight(err) {
		return fmt.Errorf("%w: compare the role with the rules in the documentation of package storageversion", err)
	}
	return err
}

// step performs the next action, and returns the delay until the next step.
func (m *migrator) step(ctx context.Context) (time.Duration, error) {
	crd, err := m.readDefinition(ctx)
	if err != nil {
		return 0, err
	}
	if crd.DeletionTimestamp != nil {
		return idle, nil
	}
	state, migration, err := m.readMigration(ctx, crd.Name)
	if err != nil {
		return 0, err
	}
	if state.ended && !isMigrated(crd) { // the cluster may have set storedVersions, and then ended its migration, after crd was read
		if crd, err = m.readDefinition(ctx); err != nil {
			return 0, err
		}
	}
	if m.walked.uid != crd.UID {
		m.walked = seen{}
	}
	next := decide(crd, state, m.walked.generation, m.clock.Now())
	if next.writes() {
		if err := m.conversions.check(crd); err != nil {
			return 0, m.fail(ctx, crd, err)
		}
		if m.seen != seenOf(crd) {
			m.seen = seenOf(crd)
			return m.settle, nil
		}
	}
	switch next {
	case request:
		return clusterInterval, m.requestMigration(ctx, migration, schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
	case await:
		return clusterInterval, nil
	case remove:
		return clusterInterval, m.removeMigration(ctx, migration)
	case write:
		return soon, m.migrate(ctx, crd)
	case repair:
		return soon, m.repair(ctx, crd)
	case nothing:
	}
	return idle, nil
}

// migrate writes all objects in the storage version, and then removes the other versions from status.storedVersions.
func (m *migrator) migrate(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	version := storageVersion(crd).Name
	if condition(crd).Reason != reasonFailed { // after a failure the condition keeps that reason until the migration succeeds
		if err := m.patchStatus(ctx, crd, apiextensionsv1.ConditionTrue, reasonRunning, "Objects are being written in version "+version); err != nil {
			return err
		}
	}
	m.log.Info("Writing all objects in the storage version", "version", version, "storedVersions", crd.Status.StoredVersions)
	if err := m.walk(ctx, crd, true); err != nil {
		return err
	}
	if err := m.patchStatus(ctx, crd, apiextensionsv1.ConditionFalse, reasonSucceeded, "All objects are stored in version "+version, version); err != nil {
		return err
	}
	m.log.Info("All objects are stored in the storage version", "version", version)
	m.walked = seenOf(crd)
	return nil
}

// repair changes the managers in managedFields whose version is not served.
func (m *migrator) repair(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	// If a version was removed too early, an object may be stored in it although storedVersions does not have it.
	failed := condition(crd).Reason == reasonFailed
	if err := m.walk(ctx, crd, failed); err != nil {
		return err
	}
	if failed {
		message := "All objects are stored in version " + storageVersion(crd).Name
		if err := m.patchStatus(ctx, crd, apiextensionsv1.ConditionFalse, reasonSucceeded, message); err != nil {
			return err
		}
	}
	m.walked = seenOf(crd)
	return nil
}

// walk goes through all objects, or only through the objects that the last complete walk could not write, if there are any. It reports
// objects that could not be written in the condition, and as an error.
func (m *migrator) walk(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, rewrite bool) error {
	w := &walk{
		crd: crd, rewrite: rewrite, reader: m.reader, writer: m.writer, limiter: m.limiter, clock: m.clock, pause: m.pause, pageSize: m.pageSize, metrics: m.metrics,
	}
	var err error
	if m.left.isOf(crd, rewrite) {
		w.done = m.left.done
		err = w.retry(ctx, m.left.keys)
	} else {
		err = w.run(ctx)
	}
	switch {
	case err == nil:
		m.left = leftover{seenOf(crd), rewrite, w.unwritten.keys, w.done}
		if len(m.left.keys) == 0 {
			return nil
		}
		err = errors.New(w.unwritten.message(storageVersion(crd).Name))
	case judge(err) == unanswered && !errors.Is(err, errNotServed):
		return err // the objects are not the cause, and the condition could probably not be written either
	}
	return m.fail(ctx, crd, err)
}

// fail writes an error into the condition, and returns it.
func (m *migrator) fail(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, err error) error {
	return errors.Join(err, m.patchStatus(ctx, crd, apiextensionsv1.ConditionFalse, reasonFailed, explain(err).Error()))
}
