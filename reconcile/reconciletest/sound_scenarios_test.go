//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// soundScenario is an operator without a mistake that an exploration could easily report by mistake.
type soundScenario struct {
	reason   string // why it is sound
	scenario func() reconciletest.Scenario
}

// allSoundScenarios has the scenarios in groups, one for each subject.
var allSoundScenarios = []map[string]soundScenario{soundScenarios, soundRecords, soundSecrets, soundConcurrency}

var soundScenarios = map[string]soundScenario{
	"TimerThatMustBeOver": {
		reason: "a delay ends a little after the moment for which it was computed, as in a real process",
		scenario: func() reconciletest.Scenario {
			s := of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					due := s.CreationTimestamp.Add(time.Minute)
					if now := time.Now(); !now.After(due) {
						return ctrl.Result{RequeueAfter: due.Sub(now)}, nil
					}
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
				}
			}, reconciletest.Create(shop()))
			s.Finally = func(env *reconciletest.Env) error {
				is := shop()
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(is), is); err != nil || is.Status.Phase != "Open" {
					return errors.Join(err, fmt.Errorf("phase %q", is.Status.Phase))
				}
				return nil
			}
			return s
		},
	},
	"NameFromTheUID": {
		reason: "the first characters of UIDs differ, so they make names unique",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, "till-"+string(s.UID)[:5], map[string]string{"of": s.Name}))
				}
			}, reconciletest.Create(shop()), reconciletest.Create(shop(func(s *Shop) { s.Name = "zoo" })), reconciletest.Delete(shop()))
		},
	},
	"ReferenceToWhatIsGone": {
		reason: "UIDs and versions of objects do not count, also of those that are gone",
		scenario: func() reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil || s.Status.LastJob != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					settings := owned(c, s, "settings", nil) // a fault may make it have other versions, and another UID
					err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(settings), settings)
					if apierrors.IsNotFound(err) {
						err = c.Create(ctx, settings)
					}
					if err == nil && settings.Data == nil {
						settings.Data = map[string]string{"motto": s.Spec.Motto}
						err = c.Update(ctx, settings)
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					job := owned(c, s, "once", nil)
					err = c.Create(ctx, job)
					if apierrors.IsAlreadyExists(err) {
						err = p.APIReader().Get(ctx, client.ObjectKeyFromObject(job), job)
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					s.Status.Message, s.Status.Account = string(job.UID), "settings "+string(settings.UID)
					s.Status.LastJob = &corev1.ObjectReference{Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion}
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, reconciletest.Create(shop()))
			s.SimulatedControllers = []reconciletest.SimulatedController{{Step: func(ctx context.Context, c client.Client) error {
				is := shop() // this controller deletes the finished object, as a time to live would
				if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil || is.Status.LastJob == nil {
					return client.IgnoreNotFound(err)
				}
				return client.IgnoreNotFound(c.Delete(ctx, config("once")))
			}}}
			return s
		},
	},
	"ReplacedByItsUser": {
		reason: "the finalizer of the simulated other writer does not get in the way of a user who deletes and creates",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil || s.Annotations["seen"] != "" {
						return ctrl.Result{}, nil
					}
					metav1.SetMetaDataAnnotation(&s.ObjectMeta, "seen", "yes")
					return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
				}
			}, reconciletest.Create(shop()), reconciletest.Do("replace the shop", func(ctx context.Context, c client.Client) error {
				if err := c.Delete(ctx, shop()); err != nil {
					return err
				}
				return c.Create(ctx, shop(func(s *Shop) { s.Spec.Motto = "new" }))
			}))
		},
	},
	"ReplacesItsChild": {
		reason: "neither does it get in the way of an operator that does so in one pass, and takes an existing child for its own",
		scenario: func() reconciletest.Scenario {
			return byGeneration(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					want, is := owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto}), config(s.Name)
					err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(is), is)
					if apierrors.IsNotFound(err) {
						is, err = want, c.Create(ctx, want)
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					if is.Data["motto"] != s.Spec.Motto {
						if err := c.Delete(ctx, is, client.Preconditions{UID: &is.UID}); client.IgnoreNotFound(err) != nil {
							return ctrl.Result{}, err
						}
						want.Labels = map[string]string{"checked": "yes"}
						return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, want))
					}
					if is.Labels["checked"] != "" {
						return ctrl.Result{}, nil
					}
					metav1.SetMetaDataLabel(&is.ObjectMeta, "checked", "yes")
					return ctrl.Result{}, c.Update(ctx, is)
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
	},
	"AnnotationsReplacedByItsUser": {
		reason: "what a user removes is not lost by the operator",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil {
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					return ctrl.Result{}, ensureFinalizer(ctx, c, s)
				}
			}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) {
				s.Annotations, s.Labels = map[string]string{"only": "mine"}, nil
			}), reconciletest.Delete(shop()))
		},
	},
	"SurplusRemoved": {
		reason: "a second child that exists since the cache was behind is removed, and its name is generated",
		scenario: func() reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					var all corev1.ConfigMapList
					if err := c.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
						return ctrl.Result{}, err
					}
					var ours []*corev1.ConfigMap
					for i := range all.Items {
						if m := &all.Items[i]; metav1.IsControlledBy(m, s) && m.DeletionTimestamp == nil {
							ours = append(ours, m)
						}
					}
					if len(ours) == 0 {
						made := owned(c, s, "", nil)
						made.GenerateName = s.Name + "-"
						return ctrl.Result{}, c.Create(ctx, made)
					}
					for _, m := range ours[1:] {
						if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(ours[0]), ours[0]); err != nil {
							return ctrl.Result{}, client.IgnoreNotFound(err)
						}
						if err := client.IgnoreNotFound(c.Delete(ctx, m)); err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()))
		},
	},
	"ScheduleWithWakeUps": {
		reason: "a pass each ten minutes that only looks whether the next run is due does not make it early or late",
		scenario: func() reconciletest.Scenario {
			return scheduled(10*time.Minute, reconciletest.Create(shop()), reconciletest.Wait(time.Hour), reconciletest.Wait(time.Hour),
				reconciletest.Wait(time.Minute), changeMotto, reconciletest.Wait(time.Hour), reconciletest.Wait(time.Minute))
		},
	},
	"ScheduleWithPolls": {
		reason: "a poll each minute stands beside work each hour",
		scenario: func() reconciletest.Scenario {
			return scheduled(time.Minute, reconciletest.Create(shop()), reconciletest.Wait(2*time.Hour), changeMotto, reconciletest.Wait(time.Hour), reconciletest.Wait(time.Minute))
		},
	},
	"ScheduleSinceItWasSeen": {
		reason:   "a fault moves the first run by seconds, and so the names of all Jobs, and one of them into the next wait",
		scenario: sinceSeen,
	},
	"UnstructuredOfOwnTypes": {
		reason: "an unstructured object may hold maps of a type of its own, which it cannot copy; a client sends them as JSON",
		scenario: func() reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					type settings map[string]any
					made := &unstructured.Unstructured{Object: map[string]any{"data": settings{"motto": s.Spec.Motto}}}
					made.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
					made.SetNamespace(s.Namespace)
					made.SetName(s.Name)
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), config("")); !apierrors.IsNotFound(err) {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, made))
				}
			}, reconciletest.Create(shop()))
		},
	},
	"DeletedSlowly": {
		reason: "an object may stay for long after the operator has removed its finalizer",
		scenario: func() reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp == nil {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					if !controllerutil.ContainsFinalizer(s, finalizer) {
						return ctrl.Result{}, nil
					}
					if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, removeFinalizer(ctx, c, s)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
	},
}

// scheduled returns the scenario of an operator that counts each full hour in its status. It looks at the clock at least as often as poll
// says.
func scheduled(poll time.Duration, actions ...reconciletest.Action) reconciletest.Scenario {
	return of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			last := s.Status.LastSeen
			if last == nil {
				last = new(metav1.NewTime(s.CreationTimestamp.Truncate(time.Hour)))
			}
			due := last.Add(time.Hour)
			if now := time.Now(); now.Before(due) {
				return ctrl.Result{RequeueAfter: min(poll, due.Sub(now))}, nil
			}
			s.Status.LastSeen = new(metav1.NewTime(due))
			s.Status.Slot++
			s.Status.Nodes = append(s.Status.Nodes, fmt.Sprint(due.Hour()))
			if err := c.Status().Update(ctx, s); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
	}, actions...)
}

// sinceSeen returns the scenario of an operator that runs a Job each hour. The hours begin when the operator first saw the shop. The Job is
// named after its time.
func sinceSeen() reconciletest.Scenario {
	return of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if s.Status.LastSeen == nil {
				s.Status.LastSeen = new(metav1.Now())
				return resultOf(time.Hour, c.Status().Update(ctx, s))
			}
			due := s.Status.LastSeen.Add(time.Hour)
			if now := time.Now(); now.Before(due) {
				return ctrl.Result{RequeueAfter: due.Sub(now)}, nil
			}
			job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
			}}}
			job.Namespace, job.Name = s.Namespace, fmt.Sprintf("%s-%d-%d", s.Name, due.Unix()/60, due.Second())
			if err := controllerutil.SetControllerReference(s, job, c.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			if err := client.IgnoreAlreadyExists(c.Create(ctx, job)); err != nil {
				return ctrl.Result{}, err
			}
			s.Status.LastSeen, s.Status.Message = new(metav1.NewTime(due)), job.Name
			return resultOf(time.Second, c.Status().Update(ctx, s))
		}
	}, reconciletest.Create(shop()), reconciletest.Wait(time.Hour), reconciletest.Wait(time.Minute), changeMotto)
}

// With EachAction, each wait must have exactly the result that it has without faults. Without EachAction, what happens in a wait may also
// happen in the next one because of a fault.
func TestEachAction(t *testing.T) {
	s := sinceSeen()
	s.Horizon = 500 * time.Millisecond
	s.Actions[1] = reconciletest.Wait(time.Hour - time.Second) // the Job is due a second before its end
	reconciletest.Explore(t, s)
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{EachAction: true}))
	if assert.NotEmpty(t, report.Failures) {
		assert.Contains(t, report.Failures[0].Err.Error(), `after "wait 59m59s" the state is not the same as without faults`)
	}
}

func TestSoundScenariosSurvive(t *testing.T) {
	for _, some := range allSoundScenarios {
		for name, tc := range some {
			t.Run(name, func(t *testing.T) {
				report := reconciletest.Explore(t, tc.scenario())
				assert.NotEmpty(t, report.Survived, tc.reason)
			})
		}
	}
}

// During a long wait only the passes that become due in it run, and few other steps are taken.
func TestWaitIsCheap(t *testing.T) {
	passes, steps := 0, 0
	s := of(func(*reconciletest.Process) shopFunc {
		return func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
			passes++
			return ctrl.Result{RequeueAfter: 10 * time.Minute}, nil
		}
	}, reconciletest.Create(shop()))
	s.SimulatedControllers = []reconciletest.SimulatedController{{Step: func(context.Context, client.Client) error { steps++; return nil }}}
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		passes, steps = 0, 0
		env.Do(reconciletest.Wait(48 * time.Hour))
		assert.InDelta(t, 288, passes, 10, "one pass each ten minutes")
		assert.Less(t, steps, 1500, "steps of the cluster")
	})
}
