package storageversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestWalkErrors proves what a walk over w1, w2 and w3 does after each kind of error, and what the condition says.
func TestWalkErrors(t *testing.T) {
	always := func(request string, err error) func(string) error {
		return func(r string) error {
			if r == request {
				return err
			}
			return nil
		}
	}
	once := func(request string, err error) func(string) error {
		failed := false
		return func(r string) error {
			if r == request && !failed {
				failed = true
				return err
			}
			return nil
		}
	}
	const advice = "change or delete them"
	for name, tc := range map[string]struct {
		reason    string
		answer    func(string) error
		requests  []string
		err       error // nil is a success
		condition string
		deletes   bool // whether the condition advises that objects may be deleted
	}{
		"Refused": {
			"the others are written", always("patch w1", invalid),
			[]string{"list v1", "patch w1", "patch w2", "patch w3"}, errSome, "refuses to write objects in version v1: " + advice, true,
		},
		"Right": {
			"each other object needs the same right", always("patch w1", noRight),
			[]string{"list v1", "patch w1"}, noRight, "compare the role", false,
		},
		"Conversion": {
			"one object may be the reason", always("patch w1", broken),
			[]string{"list v1", "patch w1", "patch w1", "patch w1", "patch w2", "patch w3"}, errSome, "fails to write objects in version v1", false,
		},
		"ConversionOnce": {
			"the webhook has begun meanwhile", once("patch w1", broken),
			[]string{"list v1", "patch w1", "patch w1", "patch w2", "patch w3"}, nil, "", false,
		},
		"Busy": {
			"the API server has no time for the others either", always("patch w2", busy),
			[]string{"list v1", "patch w1", "patch w2", "patch w2", "patch w2"}, busy, "", false,
		},
		"BusyOnce": {
			"the walk goes on", once("list v1", busy),
			[]string{"list v1", "list v1", "patch w1", "patch w2", "patch w3"}, nil, "", false,
		},
		"ListRight": {
			"another version needs the same right", always("list v1", noRight),
			[]string{"list v1"}, noRight, "compare the role", false,
		},
		"ListConversion": {
			"an object cannot be converted to v1", always("list v1", broken),
			[]string{"list v1", "list v1alpha1", "patch w1", "patch w2", "patch w3"}, nil, "", false,
		},
		"Deleted": {
			"nothing is left to write", always("patch w1", apierrors.NewNotFound(widgets, "w1")),
			[]string{"list v1", "patch w1", "patch w2", "patch w3"}, nil, "", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub("w1", "w2", "w3")
			s.answer = tc.answer
			err := s.migrator(t, false).walk(t.Context(), &s.crd, true)
			assert.Equal(t, tc.requests, s.requests, tc.reason)
			switch {
			case tc.err == nil:
				require.NoError(t, err)
			case errors.Is(tc.err, errSome):
				require.ErrorContains(t, err, "/w1: ")
			default:
				require.ErrorIs(t, err, tc.err)
			}
			if tc.condition == "" {
				assert.Empty(t, s.crd.Status.Conditions)
				return
			}
			assert.Equal(t, reasonFailed, condition(&s.crd).Reason)
			assert.Contains(t, condition(&s.crd).Message, tc.condition)
			assert.Equal(t, tc.deletes, strings.Contains(condition(&s.crd).Message, advice), condition(&s.crd).Message)
		})
	}
}

// errSome stands for an error that names w1.
var errSome = errors.New("some objects were not written")

// TestConversionStops proves that a walk ends if the conversion webhook stops answering. The condition then does not name the
// objects one by one.
func TestConversionStops(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	s := newStub(names...)
	s.answer = func(request string) error {
		if strings.HasPrefix(request, "patch w0") || strings.HasPrefix(request, "list") {
			return nil
		}
		return broken
	}
	err := s.migrator(t, false).walk(t.Context(), &s.crd, true)
	require.ErrorIs(t, err, broken)
	assert.Len(t, s.requests, 1+10+mostInARow*mostAttempts)
	assert.Contains(t, condition(&s.crd).Message, "write /w19: conversion webhook")
}

// TestRetry proves that later walks read and write only the objects that a complete walk could not write, until the
// CustomResourceDefinition changes.
func TestRetry(t *testing.T) {
	s := newStub("w1", "w2", "w3")
	refusedNames := []string{"patch w1", "patch w3"}
	s.answer = func(request string) error {
		if slices.Contains(refusedNames, request) {
			return invalid
		}
		return nil
	}
	m := s.migrator(t, false)
	require.Error(t, m.walk(t.Context(), &s.crd, true))
	s.takeRequests()
	message := condition(&s.crd).Message

	require.ErrorContains(t, m.walk(t.Context(), &s.crd, true), "/w1: ")
	assert.Equal(t, []string{"get w1", "patch w1", "get w3", "patch w3"}, s.takeRequests())
	assert.Equal(t, message, condition(&s.crd).Message)

	usual := s.answer
	s.answer = func(string) error { return busy }
	require.ErrorIs(t, m.walk(t.Context(), &s.crd, true), busy)
	assert.Equal(t, []string{"get w1", "get w1", "get w1"}, s.takeRequests())

	s.answer, refusedNames = usual, []string{"patch w3"}
	require.Error(t, m.walk(t.Context(), &s.crd, true))
	assert.Equal(t, []string{"get w1", "patch w1", "get w3", "patch w3"}, s.takeRequests(), "a walk without an answer forgets none")

	require.Error(t, m.walk(t.Context(), &s.crd, true))
	assert.Equal(t, []string{"get w3", "patch w3"}, s.takeRequests())

	s.crd.Generation++
	refusedNames = nil
	require.NoError(t, m.walk(t.Context(), &s.crd, true))
	assert.Equal(t, []string{"list v1", "patch w1", "patch w2", "patch w3"}, s.takeRequests(), "the storage version may be another one")
	require.NoError(t, m.walk(t.Context(), &s.crd, true))
	assert.Len(t, s.takeRequests(), 4, "nothing was left")
}
