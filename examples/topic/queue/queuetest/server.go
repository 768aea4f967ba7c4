// Package queuetest has a queue server for tests: in explorations, and behind a real connection.
package queuetest

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/opblocks/opblocks/examples/topic/queue"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// Token is the only one that the server accepts.
const Token = "token-of-the-queue-server"

// Server is a queue server in memory.
type Server = fakeapi.API[queue.Settings]

// Handler answers the requests to a server.
func Handler(server *Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /topics/{name}", func(w http.ResponseWriter, r *http.Request) {
		found, err := server.Get(r.Context(), r.PathValue("name"))
		if err == nil {
			err = json.NewEncoder(w).Encode(found.Fields)
		}
		fail(w, err)
	})
	mux.HandleFunc("PUT /topics/{name}", func(w http.ResponseWriter, r *http.Request) {
		sent, err := read(r)
		if err == nil {
			_, err = server.Create(r.Context(), sent)
		}
		fail(w, err)
	})
	mux.HandleFunc("PATCH /topics/{name}", func(w http.ResponseWriter, r *http.Request) {
		sent, err := read(r)
		if err == nil {
			err = server.Update(r.Context(), sent)
		}
		fail(w, err)
	})
	mux.HandleFunc("DELETE /topics/{name}", func(w http.ResponseWriter, r *http.Request) {
		fail(w, server.Delete(r.Context(), r.PathValue("name")))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+Token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// read returns the topic that a request has.
func read(r *http.Request) (sent fakeapi.Thing[queue.Settings], err error) {
	sent.Name = r.PathValue("name")
	return sent, json.NewDecoder(r.Body).Decode(&sent.Fields)
}

// fail answers with the status of an error, if there is one.
func fail(w http.ResponseWriter, err error) {
	if err != nil {
		w.WriteHeader(cmp.Or(fakeapi.StatusOf(err), http.StatusBadRequest))
	}
}
