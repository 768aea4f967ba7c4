package corpus

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isRefusal reports whether the API server has refused the content of a request. If the API server itself has failed, isRefusal reports
// false.
func isRefusal(err error) bool {
	for _, no := range []string{
		"INTERNAL_ERROR; received from peer", // it panics when an Indexed Job loses its completions
		"duplicate nodePort",
	} {
		if err != nil && strings.Contains(err.Error(), no) {
			return true
		}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to create typed")
}

// immutableFields are paths of fields that cannot change after the object was created, whatever their value.
type immutableFields []string

// contains reports whether a field is one of the immutable fields, or inside one of them.
func (f immutableFields) contains(at path) bool {
	return slices.ContainsFunc(f, func(known string) bool { return strings.HasPrefix(at.String()+"/", known) })
}

// noteIfImmutable reports whether the API server would refuse every other value of the field too. If so, and if the object is not a Pod, it
// adds the field.
func (f *immutableFields) noteIfImmutable(s *subject, t *testing.T, at path, err error) bool {
	for _, words := range []string{"immutable", "updates to statefulset spec", "pod updates may not change"} {
		if strings.Contains(err.Error(), words) {
			if s.kind(t).GVK.Kind != "Pod" { // a Pod has fields that can change
				*f = append(*f, at.String()+"/")
			}
			return true
		}
	}
	return false
}

// exceptions are patterns of fields for which the API server has rules that no apply can follow.
type exceptions []struct {
	at     *regexp.Regexp
	reason string
}

// unrepairable fields cannot be set again by server-side apply after somebody has changed or removed them.
var unrepairable = exceptions{
	{regexp.MustCompile(`/immutable$`), "the API never allows it"},
}

// unstored fields are sent by an apply, but the API server does not store them.
var unstored = exceptions{
	{regexp.MustCompile(`/volumeClaimTemplates/\d+/(apiVersion|kind)$`), "the API server stores them at the creation only"},
	{regexp.MustCompile(`/schedulingGroup(/\w+)?$`), "the API server drops fields of a feature that is switched off"},
}

// required fields cannot be dropped, in any object that has them. The tests do not try to: a refusal costs four requests and proves
// nothing, and enough other fields are refused.
var required = exceptions{
	{regexp.MustCompile(`/template/spec$`), "of a pod"},
	{regexp.MustCompile(`/containers(/\d+/(name|image|volumeMounts/\d+/(name|mountPath)|ports/\d+/containerPort|env/\d+/name))?$`), "of a container"},
	{regexp.MustCompile(`/(volumes/\d+/name|fieldRef/fieldPath|(httpGet|tcpSocket|grpc)/port|exec/command|items/\d+/(key|path))$`), "of a pod"},
	{regexp.MustCompile(`/matchExpressions/\d+/(key|operator)$`), "of a selector"},
	{regexp.MustCompile(`/rules/\d+/(apiGroups|resources|verbs|apiVersions|operations)$`), "of a Role and a webhook"},
	{regexp.MustCompile(`/(subjects/\d+|roleRef|scaleTargetRef)/(kind|name)$`), "of a reference"},
	{regexp.MustCompile(`/(paths/\d+/(backend|pathType)|backend/service(/name)?)$`), "of an Ingress"},
	{regexp.MustCompile(`/(metrics/\d+/type|target/type|policies/\d+/(type|value|periodSeconds)|resource/name)$`), "of an autoscaler"},
	{regexp.MustCompile(`/webhooks/\d+/(name|clientConfig|sideEffects|admissionReviewVersions)$`), "of a webhook"},
}

// undroppable fields stay in the live object after an apply without them.
var undroppable = exceptions{
	{regexp.MustCompile(`/dataSource(Ref)?$`), "the API server restores each of the two from the other, which nobody sent"},
	{regexp.MustCompile(`/targetCPUUtilizationPercentage$`), "an autoscaler in the older version keeps its metrics"},
	{regexp.MustCompile(`/updateStrategy(/\w+)*$`), "the parameters of the default stay"},
	{regexp.MustCompile(`/ordinals(/start)?$`), "the API server leaves out 0"},
}

func matches(e exceptions, at path) bool {
	for _, exception := range e {
		if exception.at.MatchString(at.String()) {
			return true
		}
	}
	return false
}
