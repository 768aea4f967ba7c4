// Package registrytest has a registry for tests.
package registrytest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Registry is an http.Handler that is a registry in memory.
type Registry struct {
	http.ServeMux

	mu      sync.Mutex
	entries map[string]string
}

// New returns an empty registry.
func New() *Registry {
	r := &Registry{entries: map[string]string{}}
	r.HandleFunc("PUT /caches/{namespace}/{name}", r.put)
	r.HandleFunc("GET /caches/{namespace}/{name}", r.get)
	r.HandleFunc("DELETE /caches/{namespace}/{name}", r.delete)
	return r
}

// Entries returns the addresses by namespace/name.
func (r *Registry) Entries() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.entries)
}

// State returns the entries, for package reconciletest.
func (r *Registry) State() any { return r.Entries() }

func (r *Registry) put(w http.ResponseWriter, request *http.Request) {
	var entry struct{ Address string }
	if err := json.NewDecoder(request.Body).Decode(&entry); err != nil || entry.Address == "" {
		http.Error(w, "the body has no address", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[nameIn(request)] = entry.Address
	w.WriteHeader(http.StatusNoContent)
}

func (r *Registry) get(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	address, ok := r.entries[nameIn(request)]
	if !ok {
		http.NotFound(w, request)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"address": address}) // a client that has gone needs no answer
}

func (r *Registry) delete(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.entries[nameIn(request)]; !ok {
		http.NotFound(w, request)
		return
	}
	delete(r.entries, nameIn(request))
	w.WriteHeader(http.StatusNoContent)
}

func nameIn(request *http.Request) string {
	return strings.Join([]string{request.PathValue("namespace"), request.PathValue("name")}, "/")
}
