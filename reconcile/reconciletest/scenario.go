package reconciletest

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/verdict"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Scenario is an operator, and what happens to it. Scheme and Start are required, and Actions for [Explore].
type Scenario struct {
	// Scheme has the Go types that the operator and the actions use.
	Scheme *runtime.Scheme
	// CRDs are files or directories with custom resource definitions, relative to the test's directory.
	CRDs []string
	// Webhooks are files or directories with MutatingWebhookConfigurations and ValidatingWebhookConfigurations, such as
	// ../config/webhook/base/manifests.yaml, relative to the test's directory. The API server calls the webhooks that the operator
	// registers in Start. See "Webhooks and versions" in docs/testing.md.
	Webhooks []string

	// Objects exist before the operator starts, with their status. No webhook is called for them. An object of a kind with a webhook for
	// conversions must have the storage version.
	Objects []client.Object
	// Start sets up the operator's process, as main does, with everything that the operator keeps in memory. It is called
	// once for each process: at the start, after a crash, and when another replica takes over.
	Start func(p *Process) error
	// Actions are what a user does, one after another. Each happens when the operator is quiet, except where a fault says
	// otherwise: "concurrent action", "crash with downtime after" and
	// "crash with downtime unseen after".
	Actions []Action

	// SimulatedControllers are further controllers of the cluster, or replace the default ones of their kinds, which
	// [SimulatedController] lists. The garbage collector always runs.
	SimulatedControllers []SimulatedController
	// External returns a new fake of what the operator changes outside of the cluster, such as a database. It is called
	// once for each run. What it returns is shared by all processes of the run. See [External], and [SteppingExternal] for
	// one that changes by itself. Package fakeapi has a ready-made one.
	External func() External

	// Finally is called at the end of each run of [Explore], with faults and without. It returns an error if something that
	// must hold does not. It need not check that the state is the same as without faults.
	Finally func(env *Env) error
	// Always is called after each pass and after each step of the rest of the cluster, if something has changed. It is not
	// called between two writes of one pass, nor directly after an action. It returns an error if something that must hold
	// does not. It is expensive.
	Always func(env *Env) error
	// Ignore says what may rightly differ between two runs, and is not compared.
	Ignore Ignore

	// Heartbeats are the paths of fields that the operator writes again and again though nothing has changed, such as the
	// time at which it was last seen, or a counter of its passes, by the kinds of their objects, as in [Ignore.Fields]:
	//
	//	Heartbeats: map[string][]string{"Shop": {"status.lastSeen"}},
	//
	// A write that changes nothing else does not keep the operator from being quiet, is not a finding, and is not counted. The fields
	// are not compared either. Faults happen at these writes too.
	Heartbeats map[string][]string

	// Unready are the objects that end without success on purpose: see [Unready].
	Unready []Unready

	// Options say which faults [Explore] tries.
	Options Options

	// Horizon is how long the clock may run after the last change or fault before the operator counts as quiet. The default is 15
	// minutes, enough for 17 retries with controller-runtime's backoff. With the default, an object is not waited for any
	// longer after three delayed passes in a row that change nothing, unless they are retries after an error. A horizon
	// that you set has no such limit of three. An operator that waits for something by delays needs a horizon longer than
	// the wait. One that acts at regular times needs a horizon shorter than its period, and the action [Wait].
	Horizon time.Duration
	// Latency is the virtual time that each request to the API server, effect and query of the operator takes before it is carried
	// out; reads of the cache take none. The default is 0. With it, an operator that must not exceed a rate can be checked (by the fake
	// of the external system, with [time.Now]), and the timeouts of contexts count: a request whose context ends in this time is not
	// carried out, and returns the context's error. Passes that take more than ten seconds see a cache that is not behind.
	Latency time.Duration
}

// Unready says that an object ends without success on purpose, and for which reason. The run without faults is judged when the operator is
// quiet for the last time before the object's deletion, or at the end of the run. A step of the object then waits, has failed or is
// stalled. Without Unready that is a finding ("does not succeed"). With Unready it is a finding if the object ends in another way.
//
//	Unready: []reconciletest.Unready{{Object: shop, Reason: "NoLicence"}},
type Unready struct {
	// Object has the kind, the namespace and the name of the object.
	Object client.Object
	// Reason is the reason of the step, which its condition has. For a reconciler that is not of package reconcile, Reason is a part of the
	// error of its passes.
	Reason string
}

// External is a fake of something that the operator changes outside of the cluster, such as a database.
type External interface {
	// State returns what exists there, for the comparison of runs: any value that encoding/json can encode. Names that the
	// API server generated, UIDs of objects, and times are replaced in it as in objects.
	State() any
}

// SteppingExternal is an [External] that changes by itself, such as a cloud whose machines become ready some time after
// they were created.
type SteppingExternal interface {
	External
	// Step takes one step, and reports whether it changed something. It is called as simulated controllers are: when the
	// operator has nothing to do, is down or restarts, and while a pass waits for something. If it returned true, it is called
	// again before the clock moves on. It must do the same in every run.
	//
	// What takes time compares [time.Now] with the time at which it began. The clock moves on only with the operator's own delays and by
	// [Wait]. With the default horizon, an object is no longer waited for after three delays in which nothing changes. So an operator that
	// asks again and again needs a [Scenario.Horizon] longer than what it waits for. What takes a number of calls counts them in the
	// functions that the operator calls.
	Step() bool
}

// validate returns an error if something is missing.
func (s *Scenario) validate() error {
	switch {
	case s.Scheme == nil:
		return errors.New("the scenario has no Scheme: set it to the one that the operator's manager has")
	case s.Start == nil:
		return errors.New("the scenario has no Start: set it to what the operator's main does")
	}
	for i, obj := range s.Objects {
		if isNil(obj) {
			return fmt.Errorf("the scenario's Objects[%d] is nil: give it an object", i)
		}
	}
	if s.Latency < 0 {
		return fmt.Errorf("the scenario's Latency is %s: give it zero or more", s.Latency)
	}
	for i := range s.Actions {
		if err := s.Actions[i].validate(); err != nil {
			return fmt.Errorf("the scenario's Actions[%d]: %w", i, err)
		}
	}
	if err := errors.Join(s.Ignore.validate(), validatePaths("Heartbeats", s.Heartbeats)); err != nil {
		return err
	}
	if _, err := s.unready(); err != nil {
		return err
	}
	_, err := s.simulatedControllers()
	return err
}

// unready returns the field Unready in the type of package verdict, which judges it.
func (s *Scenario) unready() (all []verdict.Unready, err error) {
	for i, u := range s.Unready {
		if isNil(u.Object) || u.Reason == "" {
			return nil, fmt.Errorf("the scenario's Unready[%d] lacks its Object or its Reason: give it both", i)
		}
		gvk, err := apiutil.GVKForObject(u.Object, s.Scheme)
		if err != nil {
			return nil, fmt.Errorf("the scenario's Unready[%d]: %w: add its types to the scheme", i, err)
		}
		all = append(all, verdict.Unready{Object: request.ObjectID{Kind: gvk, Name: client.ObjectKeyFromObject(u.Object)}, Reason: u.Reason})
	}
	return all, nil
}

// ignore removes from an object what is not compared.
func (s *Scenario) ignore(obj *unstructured.Unstructured) {
	s.Ignore.apply(obj)
	removeFields(obj, s.Heartbeats)
}

// simulated returns the scenario in the type of package run, which runs it.
func (s *Scenario) simulated() *run.Scenario {
	to := &run.Scenario{
		Scheme: s.Scheme, CRDs: s.CRDs, Webhooks: s.Webhooks, Objects: s.Objects, Ignore: s.ignore, Horizon: s.Horizon, Latency: s.Latency,
		Start: func(p *operator.Process) error { return s.Start(&Process{p}) },
	}
	if len(s.Heartbeats) > 0 {
		to.Heartbeats = func(obj *unstructured.Unstructured) { removeFields(obj, s.Heartbeats) }
	}
	for i := range s.Actions {
		to.Actions = append(to.Actions, s.Actions[i].simulated())
	}
	to.Controllers, _ = s.simulatedControllers() // validate returns the error
	to.Unready, _ = s.unready()                  // the same
	if s.External != nil {
		to.External = func() world.External { return s.External() }
	}
	if s.Finally != nil {
		to.Finally = func(w *world.World) error { return s.Finally(newEnv(w)) }
	}
	if s.Always != nil {
		to.Always = func(w *world.World) error { return s.Always(newEnv(w)) }
	}
	return to
}
