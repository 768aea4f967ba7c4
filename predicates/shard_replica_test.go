package predicates_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// replicaCommand is the argument with which this test program runs as a replica of the operator.
const replicaCommand = "shard-replica"

func TestMain(m *testing.M) {
	if len(os.Args) != 6 || os.Args[1] != replicaCommand {
		os.Exit(m.Run())
	}
	if err := runReplica(os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const servedFinalizer = "example.com/served"

// runReplica runs the operator of one shard until the process is killed.
func runReplica(kubeconfig, namespace, indexFlag, countFlag string) error {
	ctrl.SetLogger(funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{}))
	index, err := strconv.Atoi(indexFlag)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(countFlag)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	mgr, err := reconcile.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Cache: reconcile.CacheOptions(namespace),
	})
	if err != nil {
		return err
	}
	ours, err := shardFilter(index, count)
	if err != nil {
		return err
	}
	err = reconcile.For(mgr,
		reconcile.Named("served", &served{mgr.GetAPIReader()}).Finalizer(servedFinalizer),
		reconcile.Named("children", ownedresources.Ensure(ownedresources.Build(settingsOf))),
	).WithFilter(ours).WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete()
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// shardFilter returns a function that reports whether an object belongs to a shard.
func shardFilter(index, count int) (func(*policyv1.PodDisruptionBudget) bool, error) {
	if _, err := predicates.Shard(index, count); err != nil {
		return nil, err
	}
	return func(b *policyv1.PodDisruptionBudget) bool { return predicates.ShardOf(b, count) == index }, nil
}

func settingsOf(b *policyv1.PodDisruptionBudget) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name},
		Data:       map[string]string{"minAvailable": b.Spec.MinAvailable.String()},
	}
}

// served is a step that reads the object from the API server in each reconcile, so that the audit log shows every
// reconcile.
type served struct{ live client.Reader }

func (s *served) Reconcile(ctx context.Context, _ client.Client, b *policyv1.PodDisruptionBudget) error {
	return client.IgnoreNotFound(s.live.Get(ctx, client.ObjectKeyFromObject(b), &policyv1.PodDisruptionBudget{}))
}

// Finalize deletes the child, because no garbage collector runs.
func (s *served) Finalize(ctx context.Context, c client.Client, b *policyv1.PodDisruptionBudget) error {
	return client.IgnoreNotFound(c.Delete(ctx, settingsOf(b)))
}

// shardedOperator is an operator with several shards. Its control plane keeps an audit log.
type shardedOperator struct {
	cp        *controlplane.ControlPlane
	client    client.Client // the user's client
	namespace string
	audit     string // the path of the audit log
	uids      map[string]types.UID
	wanted    map[string]int // spec.minAvailable of each object that must exist, by name
	replicas  []*shardReplica
}

// shardReplica is a process of the operator. Each process has its own user name.
type shardReplica struct {
	name         string
	index, count int
	process      *supervisor.Process
	log          string
	began, ended time.Time
}

// settleTimeout is long because other tests may run at the same time.
const settleTimeout = 2 * time.Minute

const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{
	"level": "Metadata",
	"verbs": ["get", "create", "update", "patch", "delete"],
	"resources": [{"group": "policy", "resources": ["poddisruptionbudgets", "poddisruptionbudgets/*"]}, {"group": "", "resources": ["configmaps"]}]
}]}`

func newShardedOperator(t *testing.T) *shardedOperator {
	t.Helper()
	folder := t.TempDir()
	policy := filepath.Join(folder, "policy.json")
	require.NoError(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	s := &shardedOperator{audit: filepath.Join(folder, "audit.log"), uids: map[string]types.UID{}, wanted: map[string]int{}}
	s.cp = controlplane.New(t, controlplane.Options{APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + s.audit}})
	s.namespace = controlplane.Namespace(t, s.cp)
	var err error
	s.client, err = client.New(s.cp.Config(), client.Options{})
	require.NoError(t, err)
	return s
}

// start starts the process that reconciles a shard.
func (s *shardedOperator) start(t *testing.T, index, count int) *shardReplica {
	t.Helper()
	r := &shardReplica{name: fmt.Sprintf("replica-%d", len(s.replicas)), index: index, count: count, began: time.Now()}
	folder := filepath.Dir(s.cp.Kubeconfig())
	access, err := clientcmd.LoadFromFile(s.cp.Kubeconfig())
	require.NoError(t, err)
	for _, user := range access.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = r.name, []string{"system:masters"}
	}
	kubeconfig := filepath.Join(folder, r.name+".kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*access, kubeconfig))
	program, err := os.Executable()
	require.NoError(t, err)
	r.log = filepath.Join(folder, r.name+".log")
	r.process, err = s.cp.Run(r.name, program, replicaCommand, kubeconfig, s.namespace, strconv.Itoa(index), strconv.Itoa(count))
	require.NoError(t, err)
	s.replicas = append(s.replicas, r)
	return r
}

// kill kills the process. It fails the test if the process has already ended.
func (r *shardReplica) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, r.process.Err())
	require.NoError(t, r.process.Kill())
	r.ended = time.Now()
	log, err := os.ReadFile(r.log)
	require.NoError(t, err)
	require.NotContains(t, string(log), "DATA RACE")
}

// logs returns the last lines that the running replicas have logged.
func (s *shardedOperator) logs() string {
	var out bytes.Buffer
	for _, r := range s.replicas {
		if r.ended.IsZero() {
			fmt.Fprintf(&out, "%s, shard %d of %d:\n%s\n", r.name, r.index, r.count, r.process.Tail())
		}
	}
	return out.String()
}

// auditEvent is the part of an entry of the audit log that the test reads.
type auditEvent struct {
	Verb             string
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Name string }
}

// checkAudit checks, by the audit log, which replicas have reconciled an object: each reconcile reads or writes the
// object. All replicas must have ended.
func (s *shardedOperator) checkAudit(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(s.audit)
	require.NoError(t, err)
	servedBy := map[string][]*shardReplica{} // by the name of the object; its child has the same name
	requests := map[string]int{}             // by resource and verb
	for line := range bytes.Lines(log) {
		var e auditEvent
		require.NoError(t, json.Unmarshal(line, &e))
		i := slices.IndexFunc(s.replicas, func(r *shardReplica) bool { return r.name == e.ImpersonatedUser.Username })
		if i < 0 { // a request of the user, and not of a replica
			continue
		}
		requests[e.ObjectRef.Resource+" "+e.Verb]++
		if r, name := s.replicas[i], e.ObjectRef.Name; !slices.Contains(servedBy[name], r) {
			servedBy[name] = append(servedBy[name], r)
		}
	}
	for _, kind := range []string{
		"poddisruptionbudgets get", "poddisruptionbudgets patch", "configmaps create", "configmaps patch", "configmaps delete",
	} {
		assert.NotZero(t, requests[kind], "the audit log has no request %q: %v", kind, requests)
	}
	for name, uid := range s.uids {
		assert.NotEmpty(t, servedBy[name], "nobody has served %s", name)
		for i, r := range servedBy[name] {
			shard := predicates.ShardOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}, r.count)
			assert.Equal(t, shard, r.index, "%s was served by %s, which is shard %d of %d", name, r.name, r.index, r.count)
			for _, other := range servedBy[name][:i] {
				assert.False(t, r.began.Before(other.ended) && other.began.Before(r.ended), "%s was served by %s and by %s, which ran at the same time",
					name, other.name, r.name)
			}
		}
		delete(servedBy, name)
	}
	assert.Empty(t, servedBy, "requests for objects that the user has not created")
}
