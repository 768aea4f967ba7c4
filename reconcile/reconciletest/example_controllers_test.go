package reconciletest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// migrates returns a scenario of an operator that runs a Job for a Shop, and opens the Shop when the Job has completed.
func migrates(controllers ...reconciletest.SimulatedController) reconciletest.Scenario {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			job := &batchv1.Job{}
			job.Namespace, job.Name = s.Namespace, s.Name
			if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			if job.UID == "" {
				job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate", Image: "migrate:1"}}}
				if err := controllerutil.SetControllerReference(s, job, c.Scheme()); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, c.Create(ctx, job)
			}
			for _, condition := range job.Status.Conditions {
				if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
					return ctrl.Result{}, open(ctx, c, s, string(condition.Type))
				}
			}
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()))
	s.SimulatedControllers = controllers
	return s
}

// By default all Jobs complete. Here they fail; all other controllers stay.
func ExampleJobs() {
	t := new(testing.T) // in a test it is the function's own
	fails := reconciletest.Jobs(func(*batchv1.Job) batchv1.JobConditionType { return batchv1.JobFailed })
	for _, scenario := range []reconciletest.Scenario{migrates(), migrates(fails)} {
		reconciletest.Run(t, scenario, func(t *testing.T, env *reconciletest.Env) {
			s := shop()
			if err := env.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				t.Fatal(err)
			}
			fmt.Println(s.Status.Phase)
		})
	}
	// Output:
	// Complete
	// Failed
}

// A controller of the scenario's own replaces the default one of its kind.
func ExampleSimulatedController() {
	t := new(testing.T)
	scenario := migrates(reconciletest.SimulatedController{For: &batchv1.Job{}}) // Jobs are not simulated
	reconciletest.Run(t, scenario, func(t *testing.T, env *reconciletest.Env) {
		s := shop()
		if err := env.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%q\n", s.Status.Phase)
	})
	// Output:
	// ""
}

// completeJobs is another controller. It takes one step: a Job that has not finished is completed.
func completeJobs(ctx context.Context, c client.Client) error {
	var jobs batchv1.JobList
	if err := c.List(ctx, &jobs); err != nil {
		return err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if len(job.Status.Conditions) > 0 {
			continue
		}
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = new(metav1.Now()), new(metav1.Now()), 1
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
		}
		return c.Status().Update(ctx, job)
	}
	return nil
}

// oneJob returns an error if two Jobs exist at once, which must never happen.
func oneJob(env *reconciletest.Env) error {
	var jobs batchv1.JobList
	if err := env.List(context.Background(), &jobs); err != nil {
		return err
	}
	if n := len(jobs.Items); n > 1 {
		return fmt.Errorf("there are %d Jobs at once", n)
	}
	return nil
}

// migrated returns an error if the Shop is not open in the end.
func migrated(env *reconciletest.Env) error {
	s := shop()
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	if s.Status.Phase != "Complete" {
		return fmt.Errorf("the phase of the Shop is %q in the end: want Complete", s.Status.Phase)
	}
	return nil
}

// The run without faults cannot say what must never happen, or what must be true in the end. Always and Finally say it.
func ExampleScenario() {
	t := new(testing.T)
	scenario := migrates(reconciletest.SimulatedController{For: &batchv1.Job{}, Step: completeJobs})
	scenario.Always, scenario.Finally = oneJob, migrated
	for _, f := range reconciletest.ExploreQuietly(t, with(scenario, reconciletest.Options{Limit: 20})).Failures {
		fmt.Println(f.Err)
	}
	// Output:
}

// cloud is a fake of a cloud, in which a machine is ready 30 seconds after it was created.
type cloud struct {
	created map[string]time.Time
	ready   map[string]bool
}

func newCloud() reconciletest.External {
	return &cloud{created: map[string]time.Time{}, ready: map[string]bool{}}
}

func (c *cloud) State() any { return c.ready }

func (c *cloud) Step() bool {
	for name, at := range c.created {
		if !c.ready[name] && time.Since(at) >= 30*time.Second {
			c.ready[name] = true
			return true
		}
	}
	return false
}

var _ reconciletest.SteppingExternal = &cloud{}

// rents returns the scenario of an operator that rents a machine for a Shop, and asks every ten seconds whether it is ready.
func rents() reconciletest.Scenario {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			machines, found, ready := p.External().(*cloud), false, false
			err := p.Query(ctx, "machine "+s.Name, func() error {
				_, found = machines.created[s.Name]
				ready = machines.ready[s.Name]
				return nil
			})
			switch {
			case err != nil:
				return ctrl.Result{}, err
			case ready:
				return ctrl.Result{}, open(ctx, c, s, "Open")
			case !found:
				err := p.Effect(ctx, "rent machine "+s.Name, func() error {
					machines.created[s.Name] = time.Now()
					return nil
				})
				if err != nil {
					return ctrl.Result{}, err
				}
			}
			return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
		}
	}, reconciletest.Create(shop()))
	s.External, s.Horizon = newCloud, time.Minute
	return s
}

// What is outside of the cluster may change by itself. The horizon is longer than this change takes.
func ExampleSteppingExternal() {
	t := new(testing.T)
	reconciletest.Run(t, rents(), func(t *testing.T, env *reconciletest.Env) {
		s := shop()
		if err := env.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		fmt.Println(s.Status.Phase)
	})
	// Output:
	// Open
}

// An operator stores a hash of a random token in its status.
func ExampleIgnore_fields() {
	t := new(testing.T)
	var n atomic.Int64 // runs happen at the same time
	scenario := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.Status.Account != "" {
				return ctrl.Result{}, nil
			}
			s.Status.Account = fmt.Sprint("account ", n.Add(1)) // random in a real operator
			return ctrl.Result{}, c.Status().Update(ctx, s)
		}
	}, reconciletest.Create(shop()))
	scenario.Ignore = reconciletest.Ignore{Fields: map[string][]string{"Shop": {"status.account"}}}
	fmt.Println(len(reconciletest.ExploreQuietly(t, with(scenario, reconciletest.Options{Limit: 10})).Failures), "failures")
	// Output: 0 failures
}

// A sample of the faults, with the same number of faults of each kind.
func ExampleLimit() {
	t := new(testing.T)
	report := reconciletest.ExploreQuietly(t, with(migrates(), reconciletest.Options{Limit: 20, Seed: 3}))
	fmt.Println(report.Runs-1, "runs with a fault, seed", report.Seed)
	fmt.Println("all:", report.Singles <= 20)
	// Output:
	// 20 runs with a fault, seed 3
	// all: false
}
