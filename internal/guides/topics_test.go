//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// Topic is a topic that a Shop asks for.
type Topic struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
}

// TopicStatus is what is known of a topic.
type TopicStatus struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions,omitempty"`
	State      string `json:"state"` // Present, Pending, Deleting or Absent
}

// partitions has the number of partitions of each topic, by the topic's key. An observed state has one topic. The desired state has all
// topics of the Shop.
type partitions map[string]int

// topicKey returns the name of a topic in the broker. Topics of different shops differ.
func topicKey(s *Shop, name string) string { return s.Namespace + ":" + s.Name + ":" + name }

// SetupTopics adds the controller of the guide to a manager.
func SetupTopics(mgr ctrl.Manager, api broker) error {
	step := external.New(external.Resource[*Shop, partitions]{
		Record: func(s *Shop) *external.Record { return &s.Status.TopicRecord },
		Keys: func(s *Shop) (keys []string) {
			for _, t := range s.Spec.Topics {
				keys = append(keys, topicKey(s, t.Name))
			}
			return keys
		},
		Desired: func(_ context.Context, _ client.Client, s *Shop) (partitions, error) {
			all := partitions{}
			for _, t := range s.Spec.Topics {
				all[topicKey(s, t.Name)] = t.Partitions
			}
			return all, nil
		},
		Observe: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) (partitions, error) {
			n, err := api.Partitions(ctx, ref.Key)
			return partitions{ref.Key: n}, err
		},
		Differs: func(ref external.Reference, observed, desired partitions) bool {
			return observed[ref.Key] != desired[ref.Key]
		},
		Create: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, desired partitions) (string, error) {
			return "", api.Create(ctx, ref.Key, desired[ref.Key])
		},
		Update: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, _, desired partitions) error {
			return api.Resize(ctx, ref.Key, desired[ref.Key])
		},
		Delete: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) error {
			return api.Delete(ctx, ref.Key)
		},
		IsOurs:   func(*Shop, external.Reference, partitions) bool { return true }, // nobody else makes topics of such names
		Observed: recordTopic,
	})
	return reconcile.For(mgr,
		reconcile.Named("topics", step).Finalizer("shop.example.com/topics"),
		reconcile.Named("topic-status", reconcile.Func(recordTopics)),
	).Complete()
}

// recordTopic keeps in the status what was observed of one topic.
func recordTopic(s *Shop, observed partitions) {
	for key, n := range observed {
		topicIn(&s.Status.Topics, strings.TrimPrefix(key, topicKey(s, ""))).Partitions = n
	}
}

// recordTopics makes the status list the topics that are wanted, and the ones that have yet to go, once each.
func recordTopics(_ context.Context, _ client.Client, s *Shop) error {
	known := s.Status.Topics
	s.Status.Topics = nil
	for _, t := range s.Spec.Topics {
		topicIn(&s.Status.Topics, t.Name).State = "Absent" // not created yet, or refused: the condition says why
	}
	for key, state := range s.Status.TopicRecord.States() {
		name := strings.TrimPrefix(key, topicKey(s, ""))
		t := topicIn(&s.Status.Topics, name)
		t.State, t.Partitions = state, topicIn(&known, name).Partitions
	}
	return nil
}

// topicIn returns the topic of a name in a list, to which it is added if it is not there.
func topicIn(all *[]TopicStatus, name string) *TopicStatus {
	i := slices.IndexFunc(*all, func(t TopicStatus) bool { return t.Name == name })
	if i < 0 {
		*all, i = append(*all, TopicStatus{Name: name}), len(*all)
	}
	return &(*all)[i]
}

// broker is a client of the API. Each of its errors says what it means for a pass.
type broker interface {
	Partitions(ctx context.Context, name string) (int, error)
	Create(ctx context.Context, name string, partitions int) error
	Resize(ctx context.Context, name string, partitions int) error
	Delete(ctx context.Context, name string) error
}

type fakeBroker struct{ *fakeapi.Client[int] }

func (f fakeBroker) Partitions(ctx context.Context, name string) (int, error) {
	t, err := f.Get(ctx, name)
	return t.Fields, explain(asAnswer(err))
}

func (f fakeBroker) Create(ctx context.Context, name string, partitions int) error {
	_, err := f.Client.Create(ctx, fakeapi.Thing[int]{Name: name, Fields: partitions})
	return explain(asAnswer(err))
}

func (f fakeBroker) Resize(ctx context.Context, name string, partitions int) error {
	return explain(asAnswer(f.Update(ctx, fakeapi.Thing[int]{Name: name, Fields: partitions})))
}

func (f fakeBroker) Delete(ctx context.Context, name string) error {
	return explain(asAnswer(f.Client.Delete(ctx, name)))
}

func TestTopicsSurviveEveryFault(t *testing.T) {
	topics := func(all ...Topic) func(*ShopSpec) { return func(s *ShopSpec) { s.Topics = all } }
	are := func(want ...TopicStatus) func(*reconciletest.Env) error {
		return func(env *reconciletest.Env) error {
			var live Shop
			if err := env.Get(context.Background(), client.ObjectKeyFromObject(shop()), &live); err != nil {
				return err
			}
			if !slices.Equal(live.Status.Topics, want) {
				return fmt.Errorf("the status has the topics %+v, and not %+v", live.Status.Topics, want)
			}
			return nil
		}
	}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &fakeapi.API[int]{Kind: "topic"} },
		Start: func(p *reconciletest.Process) error {
			return SetupTopics(p.Manager(), fakeBroker{p.External().(*fakeapi.API[int]).Client(p)})
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(shop(topics(Topic{"orders", 3}, Topic{"carts", 1}))).Then(are(TopicStatus{"orders", 3, "Present"}, TopicStatus{"carts", 1, "Present"})),
			change(topics(Topic{"orders", 6}, Topic{"returns", 2})).Then(are(TopicStatus{"orders", 6, "Present"}, TopicStatus{"returns", 2, "Present"})),
			reconciletest.Delete(shop()),
		},
		Horizon: 5 * time.Minute, // shorter than Every: no poll repairs what a fault has broken
	})
}
