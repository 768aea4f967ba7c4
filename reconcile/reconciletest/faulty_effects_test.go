package reconciletest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// vault is a service that keeps a password for each user.
type vault struct{ passwords map[string]string }

func (v *vault) State() any { return len(v.passwords) }

// shelf is an HTTP server outside of the cluster, on which things are put.
type shelf struct{ items map[string]bool }

func (s *shelf) State() any { return s.items }

func (s *shelf) ServeHTTP(_ http.ResponseWriter, r *http.Request) { s.items[r.URL.Path] = true }

var faultyEffects = map[string]faulty{
	"EffectBeforeStatus": {
		reason: "after a crash between the two the account is not found again, so another one is created",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Account != "" {
						return ctrl.Result{}, nil
					}
					external := p.External().(*accounts)
					name := fmt.Sprintf("%s-%d", s.Name, len(external.All)+1)
					if sound {
						name = s.Name // the account is found again by this key
					}
					do := accountsOf(p).create
					if sound {
						do = accountsOf(p).keep
					}
					if err := do(ctx, name); err != nil {
						return ctrl.Result{}, err
					}
					s.Status.Account = name
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop()))
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"effect create account web-1 #1", "effect create account web-2", `external: ["web-1"] without faults, ["web-1","web-2"] here`},
	},
	"EffectForADeletedObject": {
		reason: "an old cache after a start shows a deleted object, so an account is created that nobody removes",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil {
						if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if err := ensureFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					if sound {
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					return ctrl.Result{}, accountsOf(p).keepFor(ctx, s.Name)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.TimeTravel,
		says:  []string{"time travel to before: modified Shop default/web #2", "effect keep account web", `external: null without faults, ["web"] here`},
	},
	"HTTPStatusIgnored": {
		reason: "a refusal counts as success",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				web := &http.Client{Transport: p.RoundTripper(p.External().(*shelf))}
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase == "Open" {
						return ctrl.Result{}, nil
					}
					put, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://peer/items/"+s.Name, nil)
					if err != nil {
						return ctrl.Result{}, err
					}
					answer, err := web.Do(put)
					if err != nil {
						return ctrl.Result{}, err
					}
					defer answer.Body.Close()
					if sound && answer.StatusCode != http.StatusOK {
						return ctrl.Result{}, errors.New(answer.Status)
					}
					return ctrl.Result{}, open(ctx, c, s, "Open")
				}
			}, reconciletest.Create(shop()))
			s.External = func() reconciletest.External { return &shelf{items: map[string]bool{}} }
			return s
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"effect PUT /items/web #1", `external: {"/items/web":true} without faults, null here`},
	},
	"ErrorTakenAsAbsence": {
		reason: "a failed query counts as no account, so another one is created",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
					found, err := accountsOf(p).exists(ctx, s.Name)
					if sound && err != nil {
						return ctrl.Result{}, err
					}
					if found {
						return ctrl.Result{}, nil
					}
					if sound {
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					return ctrl.Result{}, accountsOf(p).create(ctx, s.Name)
				}
			}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.ConnectionRefused,
		says:  []string{"query account web", `["web","web"] here`, "connection refused"},
	},
	"PasswordGeneratedTwice": {
		reason: "after a crash the Secret gets another password than the user has",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				v := p.External().(*vault)
				create := func(ctx context.Context, name, password string) error {
					return p.Effect(ctx, "create user "+name, func() error {
						if _, exists := v.passwords[name]; !exists {
							v.passwords[name] = password
						}
						return nil
					})
				}
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					secret := &corev1.Secret{}
					err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), secret)
					if client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
					if err == nil && (!sound || v.passwords[s.Name] != "") {
						return ctrl.Result{}, nil
					}
					made := &corev1.Secret{
						ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
						Data:       map[string][]byte{"password": []byte(rand.Text())},
					}
					if sound { // store the password first, where it can be found again
						if apierrors.IsNotFound(err) {
							if err := c.Create(ctx, made); err != nil {
								return ctrl.Result{}, err
							}
							secret = made
						}
						return ctrl.Result{}, create(ctx, s.Name, string(secret.Data["password"]))
					}
					if err := create(ctx, s.Name, string(made.Data["password"])); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Create(ctx, made)
				}
			}, reconciletest.Create(shop()))
			s.External = func() reconciletest.External { return &vault{map[string]string{}} }
			s.Ignore = reconciletest.Ignore{Fields: map[string][]string{"Secret": {"data.password"}}} // random
			s.Finally = func(env *reconciletest.Env) error {
				secret := &corev1.Secret{}
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(shop()), secret); err != nil {
					return err
				}
				if env.External.(*vault).passwords["web"] != string(secret.Data["password"]) {
					return errors.New("the Secret's password is not the user's")
				}
				return nil
			}
			return s
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"effect create user web", "the Secret's password is not the user's"},
	},
}
