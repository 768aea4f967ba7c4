package fakemanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// webhookServer keeps the webhook handlers that the operator registers. It never listens: the API server in memory calls the handlers.
type webhookServer struct {
	mux        *http.ServeMux
	registered map[string]bool // by path
}

var _ webhook.Server = &webhookServer{}

func newWebhookServer() *webhookServer {
	return &webhookServer{mux: http.NewServeMux(), registered: map[string]bool{}}
}

// Register adds a handler. Like the server of controller-runtime, it panics if the path has one already.
func (s *webhookServer) Register(path string, hook http.Handler) {
	if s.registered[path] {
		panic(fmt.Errorf("can't register duplicate path: %v", path)) // controller-runtime has the same text
	}
	s.registered[path] = true
	s.mux.Handle(path, hook)
}

// Start returns an error. The operator must not start the webhook server: the API server in memory calls its handlers.
func (s *webhookServer) Start(context.Context) error {
	return errors.New("reconciletest serves the webhooks itself: do not call Start")
}

// NeedLeaderElection returns false: every replica serves webhooks.
func (s *webhookServer) NeedLeaderElection() bool { return false }

// StartedChecker returns a check that succeeds.
func (s *webhookServer) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux returns the mux with the registered handlers.
func (s *webhookServer) WebhookMux() *http.ServeMux { return s.mux }
