//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// SetupBuckets adds the controller of the page "external" to a manager.
func SetupBuckets(mgr ctrl.Manager, api buckets) error {
	step := external.New(external.Resource[*Shop, bucket]{
		Record: func(s *Shop) *external.Record { return &s.Status.Bucket },
		Key:    func(s *Shop) string { return s.Namespace + "-" + s.Name },
		Observe: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) (bucket, error) {
			return api.Get(ctx, ref.Key)
		},
		Desired: func(_ context.Context, _ client.Client, s *Shop) (bucket, error) {
			return bucket{Region: s.Spec.Region}, nil // empty: the API chooses
		},
		Differs: func(_ external.Reference, observed, desired bucket) bool {
			return desired.Region != "" && observed.Region != desired.Region
		},
		Observed: func(s *Shop, b bucket) { s.Status.Region = b.Region },
		Create: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, desired bucket) (string, error) {
			return "", api.Put(ctx, ref.Key, desired)
		},
		Update: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, observed, desired bucket) error {
			desired.Region = cmp.Or(desired.Region, observed.Region) // the API takes only whole buckets
			return api.Put(ctx, ref.Key, desired)
		},
		Delete: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) error {
			return api.Delete(ctx, ref.Key)
		},
		Publish: bucketSecret,
		Issue: func(ctx context.Context, _ client.Client, s *Shop, ref external.Reference, _ bucket) (map[string][]byte, error) {
			key, err := api.ResetKey(ctx, ref.Key, s.Status.Bucket.Issued) // the former key is not valid any more
			return map[string][]byte{"key": key}, err
		},
	})
	return reconcile.For(mgr, reconcile.Named("bucket", step).Finalizer("shop.example.com/bucket")).Complete()
}

// bucketSecret returns the Secret with the address and the key of a bucket. Issue returns the key.
func bucketSecret(s *Shop, b bucket) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-bucket"},
		Data:       map[string][]byte{"url": []byte(b.URL), "key": nil},
	}
}

// bucket is the state of a bucket that the API returns. The access key is not a part of the state: only ResetKey returns a key.
type bucket struct{ Region, URL string }

// buckets is a client of the API.
type buckets interface {
	Get(ctx context.Context, name string) (bucket, error)
	Put(ctx context.Context, name string, b bucket) error
	Delete(ctx context.Context, name string) error
	ResetKey(ctx context.Context, name, idempotencyKey string) ([]byte, error)
}

// store is a fake of the API.
type store struct {
	Buckets map[string]bucket
	Keys    map[string]string // the valid keys
	Resets  []string
	Puts    int
}

// State has no keys: they differ between two runs.
func (s *store) State() any { return s.Buckets }

type storeClient struct {
	*store
	process *reconciletest.Process
}

func (c storeClient) Get(ctx context.Context, name string) (found bucket, err error) {
	err = c.process.Query(ctx, "get "+name, func() error {
		var exists bool
		if found, exists = c.Buckets[name]; !exists {
			return external.ErrNotFound
		}
		return nil
	})
	return found, err
}

func (c storeClient) Put(ctx context.Context, name string, b bucket) error {
	return c.process.Effect(ctx, "put "+name, func() error {
		c.Puts++
		c.Buckets[name] = bucket{cmp.Or(b.Region, "north"), "https://" + name}
		return nil
	})
}

func (c storeClient) Delete(ctx context.Context, name string) error {
	return c.process.Effect(ctx, "delete "+name, func() error { delete(c.Buckets, name); return nil })
}

func (c storeClient) ResetKey(ctx context.Context, name, idempotencyKey string) (key []byte, err error) {
	err = c.process.Effect(ctx, "reset "+name, func() error {
		if len(c.Resets) == 0 || c.Resets[len(c.Resets)-1] != idempotencyKey {
			c.Resets = append(c.Resets, idempotencyKey)
			c.Keys[name] = fmt.Sprint("key-", len(c.Resets))
		}
		key = []byte(c.Keys[name])
		return nil
	})
	return key, err
}

func bucketScenario(actions ...reconciletest.Action) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &store{Buckets: map[string]bucket{}, Keys: map[string]string{}} },
		Start: func(p *reconciletest.Process) error {
			return SetupBuckets(p.Manager(), storeClient{p.External().(*store), p})
		},
		Actions: actions,
		Ignore: reconciletest.Ignore{Fields: map[string][]string{
			"Secret": {"data.key", "metadata.annotations"}, "Shop": {"status.bucket.issued", "status.bucket.published"},
		}},
	}
}

func TestBucketsSurviveEveryFault(t *testing.T) {
	secret := bucketSecret(shop(), bucket{})
	secret.Namespace = "default"
	hasKey := func(env *reconciletest.Env) error {
		var live corev1.Secret
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(secret), &live); err != nil {
			return err
		}
		if valid := env.External.(*store).Keys["default-web"]; string(live.Data["key"]) != valid {
			return fmt.Errorf("the Secret has the key %q, and %q is valid", live.Data["key"], valid)
		}
		return nil
	}
	reconciletest.Explore(t, bucketScenario(
		reconciletest.Create(shop()).Then(hasKey),
		change(func(s *ShopSpec) { s.Region = "south" }),
		reconciletest.Delete(secret).Then(hasKey),
		reconciletest.Delete(shop()),
	))
}

// TestChosenRegionComesToRest observes for an hour a region that the API has chosen.
func TestChosenRegionComesToRest(t *testing.T) {
	reconciletest.Run(t, bucketScenario(reconciletest.Create(shop()), reconciletest.Wait(time.Hour)), func(t *testing.T, env *reconciletest.Env) {
		var live Shop
		if err := env.Get(t.Context(), client.ObjectKeyFromObject(shop()), &live); err != nil {
			t.Fatal(err)
		}
		if live.Status.Region != "north" || live.Spec.Region != "" {
			t.Errorf("the status has the region %q, and the spec %q", live.Status.Region, live.Spec.Region)
		}
		if puts := env.External.(*store).Puts; puts != 1 {
			t.Errorf("the bucket was put %d times", puts)
		}
	})
}
