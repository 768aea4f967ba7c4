package upgrade

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNotSent is the error of a request that is neither a read nor a dry run.
var errNotSent = errors.New("it was not sent: a plan sends only reads and dry runs")

// readOnly sends reads and dry runs, and refuses all other requests. A deletion has its dry run in the body, so it is refused too.
type readOnly struct{ http.RoundTripper }

func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return r.RoundTripper.RoundTrip(request)
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		if slices.Equal(request.URL.Query()["dryRun"], []string{metav1.DryRunAll}) {
			return r.RoundTripper.RoundTrip(request)
		}
	}
	if request.Body != nil {
		_ = request.Body.Close() // a RoundTripper has to
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errNotSent)
}
