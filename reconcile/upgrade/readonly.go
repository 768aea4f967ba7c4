package upgrade

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNotSent is the error of a request that is neither a read nor a dry run.
var errNotSent = errors.New("it was not sent: a plan sends only reads and dry runs")

// readOnly sends reads and dry runs, and refuses all other requests. A deletion has its dry run in the body, so it is refused too.
type readOnly struct{ http.RoundTripper }

func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if isHarmless(request) {
		return r.RoundTripper.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // a RoundTripper has to
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errNotSent)
}

// connection are the paths by which a request reaches a pod, a service or a node, whatever its method is. They know no dry run.
var connection = regexp.MustCompile(`/(pods|services|nodes)/[^/]+/(attach|exec|portforward|proxy)(/|$)`)

// isHarmless reports whether a request is a read or a dry run.
func isHarmless(request *http.Request) bool {
	if request.Header.Get("Upgrade") != "" || connection.MatchString(request.URL.Path) {
		return false
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return slices.Equal(request.URL.Query()["dryRun"], []string{metav1.DryRunAll})
	}
	return false
}
