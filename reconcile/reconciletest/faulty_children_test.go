package reconciletest_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var changeMotto = reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "always open" })

// source returns the ConfigMap from which shops copy their data.
func source() *corev1.ConfigMap {
	made := config("source")
	made.Data = map[string]string{"colour": "red"}
	return made
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func deploymentOf(c client.Client, s *Shop) *appsv1.Deployment {
	d := deployment(s.Name)
	if err := controllerutil.SetControllerReference(s, d, c.Scheme()); err != nil {
		panic(err)
	}
	return d
}

func serviceOf(c client.Client, s *Shop) *corev1.Service {
	made := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": s.Name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
		},
	}
	if err := controllerutil.SetControllerReference(s, made, c.Scheme()); err != nil {
		panic(err)
	}
	return made
}

var faultyChildren = map[string]faulty{
	"ReliesOnTheOrderOfCreation": {
		reason: "children that are created at once come in any order, and the operator stores which came first",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase != "" {
						return ctrl.Result{}, nil
					}
					results, err := ownedresources.Apply(ctx, c, s, config("one"), config("two"))
					if err != nil {
						return ctrl.Result{}, err
					}
					order, err := resourceversion.CompareResourceVersion(results[0].Object.GetResourceVersion(), results[1].Object.GetResourceVersion())
					if err != nil {
						return ctrl.Result{}, err
					}
					phase := "OneIsFirst"
					if !sound && order > 0 {
						phase = "TwoIsFirst"
					}
					return ctrl.Result{}, open(ctx, c, s, phase)
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.Reversed,
		says:  []string{"reversed order of: requests sent at once #1", `status.phase: "OneIsFirst" without faults, "TwoIsFirst" here`},
	},
	"CreateWithoutAlreadyExists": {
		reason: "after a crash the child exists already, and no pass gets further",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase == "Created" {
						return ctrl.Result{}, nil
					}
					err := c.Create(ctx, owned(c, s, s.Name, nil))
					if sound && apierrors.IsAlreadyExists(err) {
						err = nil // a real operator checks who owns it
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, open(ctx, c, s, "Created")
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"create ConfigMap default/web #1", `status.phase: "Created" without faults, nothing here`, "already exists"},
	},
	"StaleCacheCreatesTwice": {
		reason: "the cache does not show the child yet, and its name is generated, so another one is created",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					var all corev1.ConfigMapList
					if err := c.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
						return ctrl.Result{}, err
					}
					if slices.ContainsFunc(all.Items, func(m corev1.ConfigMap) bool { return metav1.IsControlledBy(&m, s) }) {
						return ctrl.Result{}, nil
					}
					made := owned(c, s, "", nil)
					made.GenerateName = s.Name + "-"
					if sound {
						made.GenerateName, made.Name = "", s.Name+"-till"
					}
					return ctrl.Result{}, c.Create(ctx, made)
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.Stale,
		says:  []string{"ConfigMap default/web-<2>: absent without faults, present here", "create ConfigMap default/web-*"},
	},
	"PruneAfterError": {
		reason: "a child that could not be built is deleted as if it were not wanted",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					wanted := map[string]bool{}
					var errs []error
					for _, name := range s.Spec.Counters {
						from := source()
						if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(from), from); err != nil {
							errs = append(errs, err)
							continue
						}
						wanted[name] = true
						errs = append(errs, ensure(ctx, c, s, owned(c, s, name, from.Data)))
					}
					if err := errors.Join(errs...); sound && err != nil {
						return ctrl.Result{}, err
					}
					var all corev1.ConfigMapList
					errs = append(errs, c.List(ctx, &all, client.InNamespace(s.Namespace)))
					for i := range all.Items {
						if m := &all.Items[i]; metav1.IsControlledBy(m, s) && !wanted[m.Name] {
							errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, m)))
						}
					}
					return ctrl.Result{}, errors.Join(errs...)
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Counters = []string{"till"} })), changeMotto)
			s.Objects = []client.Object{source()}
			return s
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"get ConfigMap default/source", "it deletes ConfigMap default/till, which it never does without faults"},
	},
	"WrongOwnerCheck": {
		reason: "an object of another owner is overwritten, because it has the child's name",
		scenario: func(sound bool) reconciletest.Scenario {
			foreign := config("web")
			foreign.Data = map[string]string{"belongs": "to another owner"}
			s := of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					want := owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})
					if sound {
						return ctrl.Result{}, ensure(ctx, c, s, want)
					}
					is := config(s.Name)
					err := c.Get(ctx, client.ObjectKeyFromObject(is), is)
					if apierrors.IsNotFound(err) {
						return ctrl.Result{}, c.Create(ctx, want)
					}
					if err != nil || maps.Equal(is.Data, want.Data) {
						return ctrl.Result{}, err
					}
					is.Data, is.OwnerReferences = want.Data, want.OwnerReferences
					return ctrl.Result{}, c.Update(ctx, is)
				}
			}, reconciletest.Create(shop()), reconciletest.Delete(shop()))
			s.Objects = []client.Object{foreign}
			if sound {
				s.Unready = []reconciletest.Unready{{Object: shop(), Reason: "the ConfigMap has another owner"}}
			}
			s.Always = func(env *reconciletest.Env) error {
				is := config("web")
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(is), is); err != nil {
					return err
				}
				if !maps.Equal(is.Data, foreign.Data) {
					return fmt.Errorf("the ConfigMap of another owner was changed: %v", is.Data)
				}
				return nil
			}
			return s
		},
		says: []string{"the ConfigMap of another owner was changed", "update ConfigMap default/web"},
	},
	"SwallowedError": {
		reason: "the creation failed, the log says so, and it is not retried",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					err := ensure(ctx, c, s, owned(c, s, s.Name, nil))
					if !sound && err != nil {
						ctrl.LoggerFrom(ctx).Error(err, "Cannot create the ConfigMap")
						err = nil
					}
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"create ConfigMap default/web #1", "ConfigMap default/web: present without faults, absent here", "Cannot create the ConfigMap"},
	},
	"HashOfAMap": {
		reason: "the hash depends on the random order of a Go map, so each pass writes another one",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					settings := map[string]string{}
					for _, name := range s.Spec.Counters {
						settings[name] = s.Spec.Motto
					}
					keys := slices.Collect(maps.Keys(settings))
					if sound {
						slices.Sort(keys)
					}
					hash := sha256.New()
					for _, key := range keys {
						fmt.Fprintln(hash, key, settings[key])
					}
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"hash": hex.EncodeToString(hash.Sum(nil))}))
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Counters = strings.Split("abcdefghijklmnop", "") })))
		},
		kind:  reconciletest.Findings.DoesNotRest,
		says:  []string{"update ConfigMap default/web", "data.hash is another value in each pass: it may be random, or a hash of a Go map"},
		never: []string{"a watch is missing"},
	},
	"RandomNameCreatedTwice": {
		reason: "after a crash the name is not known, so another child is created; two runs without faults show that the name is random",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					var all corev1.ConfigMapList
					if err := c.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
						return ctrl.Result{}, err
					}
					ours := slices.DeleteFunc(all.Items, func(m corev1.ConfigMap) bool { return !metav1.IsControlledBy(&m, s) })
					if sound && len(ours) > 0 {
						for i := range ours[1:] {
							if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(&ours[0]), &ours[0]); err != nil {
								return ctrl.Result{}, client.IgnoreNotFound(err)
							}
							if err := c.Delete(ctx, &ours[i+1]); client.IgnoreNotFound(err) != nil {
								return ctrl.Result{}, err
							}
						}
						return ctrl.Result{}, nil
					}
					if !sound && s.Status.Account != "" {
						return ctrl.Result{}, nil
					}
					made := owned(c, s, s.Name+"-"+strings.ToLower(rand.Text()[:8]), nil)
					if err := c.Create(ctx, made); err != nil || sound {
						return ctrl.Result{}, err
					}
					s.Status.Account = made.Name
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"create ConfigMap default/web-* #1", "absent without faults, present here", "not compared, since two runs without faults differ there (a random value, the order of a Go map, or a package variable): ConfigMap default/web-*"},
	},
	"NameFromTheClock": {
		reason: "after a crash the name is another one, so another object is created",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase != "" {
						return ctrl.Result{}, nil
					}
					name := fmt.Sprintf("%s-%d", s.Name, time.Now().Unix())
					if sound {
						name = fmt.Sprintf("%s-%d", s.Name, s.Generation)
					}
					if err := c.Create(ctx, owned(c, s, name, nil)); err != nil && !apierrors.IsAlreadyExists(err) {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, open(ctx, c, s, "Open")
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"create ConfigMap default/web-9", "absent without faults, present here"},
	},
	"AnyErrorOfGetTakenAsAbsence": {
		reason: "an object that cannot be read once counts as deleted for ever",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase != "" {
						return ctrl.Result{}, nil
					}
					from := source()
					err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(from), from)
					if sound && client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
					if err != nil {
						return ctrl.Result{}, open(ctx, c, s, "SourceMissing")
					}
					return ctrl.Result{}, open(ctx, c, s, "Open")
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{source()}
			return s
		},
		fault: reconciletest.Faults.TooManyRequests,
		says:  []string{"get ConfigMap default/source #1", `status.phase: "Open" without faults, "SourceMissing" here`},
	},
	"NotFoundOfAnUpdateTakenAsDone": {
		reason: "the child was deleted just before, and the status says that it is up to date",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if !sound && s.Status.Message == "has "+s.Spec.Motto {
						return ctrl.Result{}, nil
					}
					err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto}))
					if !sound {
						err = client.IgnoreNotFound(err)
					}
					if err != nil || s.Status.Message == "has "+s.Spec.Motto {
						return ctrl.Result{}, err
					}
					s.Status.Message = "has " + s.Spec.Motto
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.NotFound,
		says:  []string{"not found at: update ConfigMap default/web #1", "ConfigMap default/web: present without faults, absent here"},
	},
	"ConflictSwallowed": {
		reason: "an update that is refused is only logged, so the pass is not retried",
		scenario: func(sound bool) reconciletest.Scenario {
			return byGeneration(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					want, is := owned(c, s, s.Name, map[string]string{"of": s.Name}), config(s.Name)
					if sound {
						return ctrl.Result{}, ensure(ctx, c, s, want)
					}
					err := c.Get(ctx, client.ObjectKeyFromObject(want), is)
					if apierrors.IsNotFound(err) {
						return ctrl.Result{}, c.Create(ctx, want)
					}
					want.ResourceVersion = is.ResourceVersion
					if err := c.Update(ctx, want); err != nil {
						ctrl.LoggerFrom(ctx).Error(err, "Cannot update the ConfigMap")
					}
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"a refused write is not sent again: pass ", "no error after update ConfigMap default/web (", "conflict at: update ConfigMap default/web #1"},
		never: []string{"a watch is missing"},
	},
	"LabelsReplaced": {
		reason: "labels of other writers are removed at each update",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					want := config(s.Name)
					_, err := controllerutil.CreateOrUpdate(ctx, c, want, func() error {
						if want.Labels == nil || !sound {
							want.Labels = map[string]string{}
						}
						want.Labels["motto"], want.Labels["of"] = s.Spec.Motto, s.Name
						return nil
					})
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"conflict at: update ConfigMap default/web #1", "lost what another writer wrote just before: the label"},
	},
	"JobRunAgain": {
		reason: "the Job is deleted before its end is recorded, so it is created again after a crash",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
						Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
					}}}
					if s.Status.Phase != "" {
						return ctrl.Result{}, nil
					}
					if err := client.IgnoreAlreadyExists(c.Create(ctx, job)); err != nil {
						return ctrl.Result{}, err
					}
					if sound { // the Job is kept: it shows that it has run
						return ctrl.Result{}, open(ctx, c, s, "Done")
					}
					if err := client.IgnoreNotFound(c.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, open(ctx, c, s, "Done")
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"update Shop/status default/web #1", "it runs Job default/web again 1 time, without faults 0 times"},
	},
	"SuspendedJobRunAgain": {
		reason: "a Job that was created suspended is resumed again after a crash; the sound operator never resumes it, so creating and deleting it again does no harm",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{
						Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
					}}}
					if s.Status.Phase != "" {
						return ctrl.Result{}, nil
					}
					if err := client.IgnoreAlreadyExists(c.Create(ctx, job)); err != nil {
						return ctrl.Result{}, err
					}
					if !sound {
						resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))
						if err := c.Patch(ctx, job, resume); err != nil {
							return ctrl.Result{}, err
						}
					}
					if err := client.IgnoreNotFound(c.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, open(ctx, c, s, "Done")
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"update Shop/status default/web #1", "it runs Job default/web again 1 time, without faults 0 times"},
	},
	"UpdateWithoutAVersion": {
		reason: "what another writer wrote just before is overwritten",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					want := owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})
					is := config(s.Name)
					err := c.Get(ctx, client.ObjectKeyFromObject(is), is)
					if apierrors.IsNotFound(err) {
						return ctrl.Result{}, c.Create(ctx, want)
					}
					if err != nil || maps.Equal(is.Data, want.Data) {
						return ctrl.Result{}, err
					}
					is.Data = want.Data
					if !sound {
						is.ResourceVersion = ""
					}
					return ctrl.Result{}, c.Update(ctx, is)
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"conflict at: update ConfigMap default/web #1", "lost what another writer wrote just before: the annotation"},
	},
	"SecondChildGuardedByTheFirst": {
		reason: "a tutorial's operator: if the creation of the Service fails once, it is never created",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{})
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					d := &appsv1.Deployment{}
					err := c.Get(ctx, client.ObjectKeyFromObject(s), d)
					if client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
					if apierrors.IsNotFound(err) {
						if err := c.Create(ctx, deploymentOf(c, s)); err != nil {
							return ctrl.Result{}, err
						}
					} else if !sound {
						return ctrl.Result{}, nil // everything exists
					}
					if err := c.Get(ctx, client.ObjectKeyFromObject(s), &corev1.Service{}); !apierrors.IsNotFound(err) {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Create(ctx, serviceOf(c, s))
				}}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"create Service default/web #1", "Service default/web: present without faults, absent here"},
	},
	"NamelessChildReplaced": {
		reason: "after a crash the till is replaced although it is new; its name is generated, so it is counted by its owner",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					var all corev1.ConfigMapList
					now := shop() // the cache may be old
					err := errors.Join(p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), now), p.APIReader().List(ctx, &all, client.InNamespace(s.Namespace)))
					if err != nil || now.Spec.Motto != s.Spec.Motto {
						return ctrl.Result{}, err
					}
					upToDate := false
					for i := range all.Items {
						m := &all.Items[i]
						if !metav1.IsControlledBy(m, s) {
							continue
						}
						wanted := m.Data["motto"] == s.Spec.Motto
						if wanted && !upToDate && (sound || s.Status.Message == s.Spec.Motto) {
							upToDate = true
							continue
						}
						if err := client.IgnoreNotFound(c.Delete(ctx, m, client.Preconditions{UID: &m.UID})); err != nil {
							return ctrl.Result{}, err
						}
					}
					if !upToDate {
						made := owned(c, s, "", map[string]string{"motto": s.Spec.Motto})
						made.GenerateName = s.Name + "-"
						if err := c.Create(ctx, made); err != nil {
							return ctrl.Result{}, err
						}
					}
					if s.Status.Message == s.Spec.Motto {
						return ctrl.Result{}, nil
					}
					s.Status.Message = s.Spec.Motto
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "open" })), changeMotto)
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"update Shop/status default/web #1", "it deletes ConfigMap default/web-* of Shop web 1 time, without faults 0 times"},
	},
	"RestartNotRecorded": {
		reason: "after a crash between the restart and its record, the workload is restarted again",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase == s.Spec.Motto {
						return ctrl.Result{}, nil
					}
					at := time.Now().Format(time.RFC3339)
					if sound {
						at = s.Spec.Motto // a value that is the same after a crash
					}
					patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, at)
					target := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
					if err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, open(ctx, c, s, s.Spec.Motto)
				}
			}, reconciletest.Create(shop()), changeMotto)
			s.Objects = []client.Object{deployment("web")}
			return s
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"patch Deployment default/web #1", "it changes the pod template of Deployment default/web 2 times, without faults 1 time"},
	},
}
