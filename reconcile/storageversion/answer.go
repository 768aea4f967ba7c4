package storageversion

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// verdict says what a walk makes of an error for one object.
type verdict string

const (
	// refused means that the schema or an admission check does not accept the object. The walk goes on.
	refused verdict = "refused"

	// failing means that the API server cannot write the object, for instance because it cannot convert it. The walk goes on.
	failing verdict = "failing"

	// denied means that a right is missing, which every object needs. The walk ends.
	denied verdict = "denied"

	// unanswered means that the API server was not reached, or has no time. The request is sent again, and then the walk ends.
	unanswered verdict = "unanswered"
)

// judge returns what an error says. Only a refused object has to be changed by somebody.
func judge(err error) verdict {
	switch {
	case isDenial(err):
		return refused
	case errors.Is(err, errUnreadable):
		return failing
	case !isAnswer(err), isBusy(err):
		return unanswered
	case lacksRight(err):
		return denied
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return refused
	}
	return failing
}

// isTransient reports whether the same request may succeed a moment later. A conversion webhook that is not reached is an internal error.
func isTransient(err error) bool {
	v := judge(err)
	return v == unanswered || v == failing && apierrors.IsInternalError(err)
}

// isAnswer reports whether the API server has answered with this error.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// isBusy reports whether the API server, or a proxy before it, has answered that it cannot answer now, or does not accept the token, which client-go renews.
func isBusy(err error) bool {
	var status apierrors.APIStatus
	codes := []int32{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return apierrors.IsServerTimeout(err) || errors.As(err, &status) && slices.Contains(codes, status.Status().Code)
}

// isDenial reports whether a webhook or a policy has refused an object. Both choose the code of the answer, which may be any one, so the text is
// compared (apiserver, pkg/admission/plugin/webhook/errors and pkg/admission/plugin/policy/validating).
func isDenial(err error) bool {
	return isAnswer(err) && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request"))
}

// lacksRight reports whether the authorizer has refused a request, and not an admission check, which answers 403 too. Their texts differ (apiserver,
// pkg/endpoints/handlers/responsewriters).
func lacksRight(err error) bool {
	if !apierrors.IsForbidden(err) || isDenial(err) {
		return false
	}
	_, verb, found := strings.Cut(err.Error(), `: User "`)
	return found && strings.Contains(verb, `" cannot `) && strings.Contains(verb, " resource ")
}
