package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// AbandonAnnotation with the value "true" lets a DatabaseUser be deleted although its account cannot be dropped.
const AbandonAnnotation = "mygroup.handsomeguy.cn/abandon"

func abandoned(u *userv1alpha1.DatabaseUser) bool { return u.Annotations[AbandonAnnotation] == "true" }

// abandon reports which account may be left, by an event and by the condition, which stays while there are other finalizers.
func (a *account) abandon(ctx context.Context, u *userv1alpha1.DatabaseUser) error {
	message := fmt.Sprintf("the annotation %s was set: account %s on hosts %s may still be there", AbandonAnnotation, u.Status.User, strings.Join(u.Status.Hosts, ", "))
	condition := metav1.Condition{Type: conditions.Ready, Status: metav1.ConditionFalse, Reason: reasonAbandoned, Message: message}
	if _, _, err := Conditions.Set(&u.Status.Conditions, condition); err != nil {
		return err
	}
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	if a.recorder != nil {
		a.recorder.Eventf(u, nil, corev1.EventTypeWarning, reasonAbandoned, "Finalize", "%s", message)
	}
	return nil
}
