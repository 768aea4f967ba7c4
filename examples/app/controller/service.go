package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

const conditionServiceReady = "ServiceReady"

// service returns the Service of an App, or nil if it has no ports. Input that the API server is known to refuse is an error
// here, so that it is not sent again at every event.
func service(app *appv1.App) (*corev1.Service, error) {
	if len(app.Spec.Ports) == 0 {
		return nil, nil
	}
	if errs := ownedresources.ValidateName[corev1.Service](app.Name, field.NewPath("metadata", "name")); len(errs) > 0 {
		return nil, reconcile.Stalled("InvalidServiceName", fmt.Errorf("no Service: %w", errs.ToAggregate()))
	}
	ports := withNames(app.Spec.Ports)
	if errs := ownedresources.ValidateServicePorts(ports, field.NewPath("spec", "ports")); len(errs) > 0 {
		return nil, reconcile.Stalled(portReason(errs), fmt.Errorf("no Service: %w", errs.ToAggregate()))
	}
	s := ownedresources.NewService(app, podLabels(app), ports...)
	s.Spec.Type = app.Spec.ServiceType
	return s, nil
}

func portReason(errs field.ErrorList) string {
	if slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Type == field.ErrorTypeDuplicate }) {
		return "DuplicatePort"
	}
	return "Invalid" // as if the API server had refused the Service
}

// withNames names each port if there are several: the API server requires it.
func withNames(ports []corev1.ServicePort) []corev1.ServicePort {
	ports = slices.Clone(ports)
	if len(ports) > 1 {
		for i, p := range ports {
			ports[i].Name = cmp.Or(p.Name, fmt.Sprintf("%s-%d", strings.ToLower(string(protocol(p))), p.Port))
		}
	}
	return ports
}

func protocol(p corev1.ServicePort) corev1.Protocol { return cmp.Or(p.Protocol, corev1.ProtocolTCP) }

// serviceStep is the step that keeps the Service and records its address in the status. The address stays after a failure,
// since the Service still works, unless the Service is somebody else's.
type serviceStep struct {
	*ownedresources.ChildSet[*appv1.App]
}

func (s serviceStep) Reconcile(ctx context.Context, c client.Client, app *appv1.App) error {
	err := s.ChildSet.Reconcile(ctx, c, app)
	_, foreign := errors.AsType[*ownedresources.OwnershipError](err)
	_, waits := errors.AsType[*ownedresources.WaitingError](err) // for the address of a load balancer
	if err == nil || foreign {
		app.Status.Endpoint = ""
	}
	if (err == nil || waits) && len(app.Spec.Ports) > 0 {
		app.Status.Endpoint = fmt.Sprintf("%s.%s.svc:%d", app.Name, app.Namespace, app.Spec.Ports[0].Port)
	}
	return err
}
