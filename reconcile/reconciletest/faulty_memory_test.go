package reconciletest_test

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// replaceShop is an action that deletes the shop and creates another one of its name.
func replaceShop() reconciletest.Action {
	return reconciletest.Do("replace the shop", func(ctx context.Context, c client.Client) error {
		if err := c.Delete(ctx, shop()); err != nil {
			return err
		}
		return c.Create(ctx, shop())
	})
}

// exists returns a check for [reconciletest.Action.Then].
func exists(obj client.Object) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		return env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
	}
}

// jobOf returns a Job of the shop.
func jobOf(c client.Client, s *Shop, name string) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{"shop": s.Name}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
		}},
	}
	if err := controllerutil.SetControllerReference(s, job, c.Scheme()); err != nil {
		panic(err)
	}
	return job
}

// faultyMemory are operators that rely on what a process keeps in memory.
var faultyMemory = map[string]faulty{
	"MapKeyedByName": {
		reason: "an object that is deleted and created again has its name, and counts as the one before",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				done := map[string]string{} // the motto that was sent last, so that not each pass sends it
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					key := s.Namespace + "/" + s.Name
					if sound {
						key = string(s.UID)
					}
					if motto, ok := done[key]; ok && motto == s.Spec.Motto {
						return ctrl.Result{}, nil
					}
					if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil {
						return ctrl.Result{}, err
					}
					done[key] = s.Spec.Motto
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()), replaceShop().Then(exists(config("web"))))
		},
		says: []string{`after "replace the shop" what must be true is not`, `configmaps "web" not found`},
	},
	"LeakedSemaphore": {
		reason: "a pass that ends early keeps its place, and the next one waits for a place for ever",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				places := make(chan struct{}, 1) // how many shops are opened at a time
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					select {
					case places <- struct{}{}:
					case <-ctx.Done():
						return ctrl.Result{}, ctx.Err()
					}
					if sound {
						defer func() { <-places }()
					}
					from := source()
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(from), from); err != nil {
						return ctrl.Result{}, err
					}
					err := ensure(ctx, c, s, owned(c, s, s.Name, from.Data))
					if !sound {
						<-places
					}
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{source()}
			return s
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"at: get ConfigMap default/source #1", "pass over Shop default/web has not ended after 1h0m0s of virtual time"},
	},
	"PlaceNeverReturned": {
		reason: "a pass that fails keeps its place, so the next ones find none, and ask again and again",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				busy := map[types.UID]bool{}
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if len(busy) > 0 {
						return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
					}
					busy[s.UID] = true
					if sound {
						defer delete(busy, s.UID)
					}
					from := source()
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(from), from); err != nil {
						return ctrl.Result{}, err
					}
					if err := ensure(ctx, c, s, owned(c, s, s.Name, from.Data)); err != nil {
						return ctrl.Result{}, err
					}
					delete(busy, s.UID)
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{source()}
			return s
		},
		fault: reconciletest.Faults.ConnectionRefused,
		says:  []string{"connection refused at: ", "ConfigMap default/web: present without faults, absent here", "again after 10s"},
	},
	"EffectInAfterFunc": {
		reason: "a crash stops the timer, and the status says that it runs",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound {
						if left := time.Until(s.CreationTimestamp.Add(time.Minute)); left > 0 {
							return ctrl.Result{RequeueAfter: left}, nil
						}
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					if s.Status.Phase == "Scheduled" {
						return ctrl.Result{}, nil
					}
					time.AfterFunc(time.Minute, func() {
						if err := accountsOf(p).keep(p.Context(), s.Name); err != nil {
							ctrl.LoggerFrom(ctx).Error(err, "Cannot create the account")
						}
					})
					return ctrl.Result{}, open(ctx, c, s, "Scheduled")
				}
			}, reconciletest.Create(shop()), reconciletest.Wait(2*time.Minute))
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"crash after: update Shop/status default/web #1", `external: ["web"] without faults, null here`},
	},
	"GivesUpAfterSomeAttempts": {
		reason: "two errors while the cache is behind are enough that nothing is ever done for the object again",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				attempts := map[types.NamespacedName]int{}
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					key := client.ObjectKeyFromObject(s)
					if !sound && attempts[key] == 2 {
						ctrl.LoggerFrom(ctx).Info("Giving up")
						return ctrl.Result{}, nil
					}
					if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil {
						attempts[key]++
						return ctrl.Result{}, err
					}
					delete(attempts, key)
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.StaleLong,
		says:  []string{"stale for long after: ", `ConfigMap default/web: data.motto: "always open" without faults`},
	},
	"LockNeverReleased": {
		reason: "a process that dies with the lock leaves it there, and the next one waits for it",
		scenario: func(sound bool) reconciletest.Scenario {
			const lock = "example.com/locked-at"
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					at, locked := s.Annotations[lock]
					if locked {
						since, err := time.Parse(time.RFC3339, at)
						if err != nil {
							return ctrl.Result{}, err
						}
						if left := time.Until(since.Add(time.Minute)); !sound || left > 0 {
							return ctrl.Result{RequeueAfter: max(left, 10*time.Second)}, nil
						}
					}
					if !locked && s.Status.Message == s.Spec.Motto {
						return ctrl.Result{}, nil
					}
					metav1.SetMetaDataAnnotation(&s.ObjectMeta, lock, time.Now().Format(time.RFC3339))
					if err := c.Update(ctx, s); err != nil {
						return ctrl.Result{}, err
					}
					if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil {
						return ctrl.Result{}, err
					}
					s.Status.Message = s.Spec.Motto
					if err := c.Status().Update(ctx, s); err != nil {
						return ctrl.Result{}, err
					}
					delete(s.Annotations, lock)
					return ctrl.Result{}, c.Update(ctx, s)
				}
			}, painted("open")...)
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"crash after: update Shop", "metadata.annotations.example.com/locked-at: nothing without faults"},
	},
	"JobNamedAfterTheTime": {
		reason: "the cache does not show the Job yet, and the next one has another name",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					job := jobOf(c, s, fmt.Sprintf("%s-%d", s.Name, time.Now().Unix()))
					if sound {
						job.Name = fmt.Sprintf("%s-%d", s.Name, s.Generation)
						if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, job))
					}
					var jobs batchv1.JobList
					if err := c.List(ctx, &jobs, client.InNamespace(s.Namespace), client.MatchingLabels{"shop": s.Name}); err != nil || len(jobs.Items) > 0 {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Create(ctx, job)
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashUnseen,
		says:  []string{"create Job default/web-9"},
	},
}
