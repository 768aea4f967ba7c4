package ownedresources

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateName returns why an object of type C cannot have this name, or nil. path is the field that the name comes from,
// such as field.NewPath("metadata", "name") of the owner; it is part of each error:
//
//	errs := ownedresources.ValidateName[corev1.Service](app.Name, field.NewPath("metadata", "name"))
//
// The name of a custom resource is a DNS subdomain of up to 253 characters. These kinds allow less:
//
//   - A Service: a DNS-1035 label, at most 63 lower case letters, digits and hyphens, beginning with a letter. API servers
//     from version 1.36 on also accept a digit at the beginning; older ones do not
//     (https://kubernetes.io/docs/concepts/services-networking/service/#defining-a-service).
//   - A StatefulSet: a DNS label of at most 52 characters. The API server accepts 63, but its controller then creates no
//     pod: a pod carries the name of its revision, which is the name with a hash, as the value of a label
//     (https://github.com/kubernetes/kubernetes/issues/64023).
//   - A Job: a DNS subdomain of at most 63 characters, since its pods carry it as the value of a label. A name without dots
//     is better: pods get their host name from it
//     (https://kubernetes.io/docs/concepts/workloads/controllers/job/#writing-a-job-spec).
//   - A CronJob: a DNS subdomain of at most 52 characters: the name of each Job is 11 characters longer
//     (https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/).
//
// A function of [BuildOrError] returns the errors as one: errors.ToAggregate(). An admission webhook passes them to
// apierrors.NewInvalid.
func ValidateName[C corev1.Service | appsv1.StatefulSet | batchv1.Job | batchv1.CronJob](name string, path *field.Path) field.ErrorList {
	switch any(new(C)).(type) {
	case *corev1.Service:
		return invalidName(name, path, "a Service", validation.IsDNS1035Label(name)...)
	case *appsv1.StatefulSet:
		problems := validation.IsDNS1123Label(name)
		if len(problems) == 0 && len(name) > maxRevisionedName {
			problems = append(problems, validation.MaxLenError(maxRevisionedName))
		}
		return invalidName(name, path, "a StatefulSet", problems...)
	case *batchv1.Job:
		return invalidName(name, path, "a Job", subdomainUpTo(validation.LabelValueMaxLength, name)...)
	default:
		return invalidName(name, path, "a CronJob", subdomainUpTo(maxCronJobName, name)...)
	}
}

const (
	// maxRevisionedName is the length of the longest name of a StatefulSet. Its pods have a label with that name, a
	// hyphen and a suffix of ten characters.
	maxRevisionedName = validation.LabelValueMaxLength - 1 - 10
	// maxCronJobName is the length of the longest name of a CronJob. The name of a Job is that name with a hyphen and
	// ten digits.
	maxCronJobName = validation.LabelValueMaxLength - 11
)

func subdomainUpTo(length int, name string) (problems []string) {
	if len(name) > length {
		return []string{validation.MaxLenError(length)}
	}
	return validation.IsDNS1123Subdomain(name)
}

func invalidName(name string, path *field.Path, kind string, problems ...string) (errs field.ErrorList) {
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, name, "not a name for "+kind+", choose another: "+problem))
	}
	return errs
}

// The protocols of a port.
var protocols = sets.New(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)

// ValidateServicePorts returns why a Service cannot have these ports, or nil. path is the list that they come from,
// such as field.NewPath("spec", "ports") of the owner; it is part of each error, with the port's index.
//
// The API server refuses the whole Service if a port breaks one of these rules:
//
//   - port and a targetPort that is a number are from 1 to 65535. A targetPort may be unset.
//   - A targetPort that is a name is a valid name of a container's port: at most 15 characters, with a letter.
//   - protocol is TCP, UDP or SCTP, or unset, which is TCP.
//   - Each name is a DNS label and is used once. Only a single port may be without one.
//   - Each number is used once for a protocol, and so is each nodePort. Such an error has the type
//     field.ErrorTypeDuplicate.
//
// Whether a nodePort is allowed depends on the type of the Service and on the cluster: only the API server checks it.
// appProtocol is not checked either. See [ValidateName] for what to do with the errors.
func ValidateServicePorts(ports []corev1.ServicePort, path *field.Path) (errs field.ErrorList) {
	names, numbers, nodePorts := sets.Set[string]{}, sets.Set[string]{}, sets.Set[string]{}
	for i, p := range ports {
		path := path.Index(i)
		errs = append(errs, validateServicePort(p, path)...)

		protocol := cmp.Or(p.Protocol, corev1.ProtocolTCP)
		number := fmt.Sprintf("%d/%s", p.Port, protocol)
		nodePort := fmt.Sprintf("%d/%s", p.NodePort, protocol)
		if p.Name == "" && len(ports) > 1 {
			errs = append(errs, field.Required(path.Child("name"), "each of several ports needs a name"))
		}
		if p.Name != "" && names.Has(p.Name) {
			errs = append(errs, duplicate(path.Child("name"), p.Name, "choose another name"))
		}
		if numbers.Has(number) {
			errs = append(errs, duplicate(path, number, number+" is there twice, remove one of them"))
		}
		if p.NodePort != 0 && nodePorts.Has(nodePort) {
			errs = append(errs, duplicate(path.Child("nodePort"), nodePort, "choose another number, or leave it unset"))
		}
		names.Insert(p.Name)
		numbers.Insert(number)
		nodePorts.Insert(nodePort)
	}
	return errs
}

// validateServicePort checks a port by itself.
func validateServicePort(p corev1.ServicePort, path *field.Path) (errs field.ErrorList) {
	invalid := func(child string, value any, problems []string) {
		for _, problem := range problems {
			errs = append(errs, field.Invalid(path.Child(child), value, problem))
		}
	}
	if p.Name != "" {
		invalid("name", p.Name, validation.IsDNS1123Label(p.Name))
	}
	invalid("port", p.Port, validation.IsValidPortNum(int(p.Port)))
	if p.Protocol != "" && !protocols.Has(p.Protocol) {
		errs = append(errs, field.NotSupported(path.Child("protocol"), p.Protocol, sets.List(protocols)))
	}
	switch t := p.TargetPort; {
	case t.Type == intstr.String && t.StrVal != "":
		invalid("targetPort", t.StrVal, validation.IsValidPortName(t.StrVal))
	case t.IntVal != 0:
		invalid("targetPort", t.IntVal, validation.IsValidPortNum(int(t.IntVal)))
	}
	return errs
}

func duplicate(path *field.Path, value, whatToDo string) *field.Error {
	err := field.Duplicate(path, value)
	err.Detail = whatToDo
	return err
}
