package builtin

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	roleKind = description{
		prototype: &rbacv1.Role{}, resource: "roles", createOnUpdate: true,
		behaviour: behaviour{validateName: validateRoleName, validate: forValidation(func(r *rbacv1.Role) field.ErrorList { return validatePolicyRules(r.Rules, true) })},
	}
	clusterRoleKind = description{
		prototype: &rbacv1.ClusterRole{}, resource: "clusterroles", clusterScoped: true, createOnUpdate: true,
		behaviour: behaviour{validateName: validateRoleName, validate: forValidation(func(r *rbacv1.ClusterRole) field.ErrorList { return validatePolicyRules(r.Rules, false) })},
	}
	roleBindingKind = description{
		prototype: &rbacv1.RoleBinding{}, resource: "rolebindings", createOnUpdate: true,
		behaviour: behaviour{
			validateName: validateRoleName,
			setDefaults:  forObject(func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }),
			validate:     forValidation(func(b *rbacv1.RoleBinding) field.ErrorList { return validateRoleRef(b.RoleRef, "Role", "ClusterRole") }),
			validateUpdate: forUpdateValidation(func(obj, live *rbacv1.RoleBinding) field.ErrorList {
				return validateRoleRefUpdate(obj.RoleRef, live.RoleRef)
			}),
		},
	}
	clusterRoleBindingKind = description{
		prototype: &rbacv1.ClusterRoleBinding{}, resource: "clusterrolebindings", clusterScoped: true, createOnUpdate: true,
		behaviour: behaviour{
			validateName: validateRoleName,
			setDefaults:  forObject(func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }),
			validate:     forValidation(func(b *rbacv1.ClusterRoleBinding) field.ErrorList { return validateRoleRef(b.RoleRef, "ClusterRole") }),
			validateUpdate: forUpdateValidation(func(obj, live *rbacv1.ClusterRoleBinding) field.ErrorList {
				return validateRoleRefUpdate(obj.RoleRef, live.RoleRef)
			}),
		},
	}
)

// validateRoleName allows every name that can be a segment of a path.
func validateRoleName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setIfZero(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].Kind == rbacv1.UserKind || subjects[i].Kind == rbacv1.GroupKind {
			setIfZero(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// validatePolicyRules validates the rules of a role. Errors about missing verbs come last, as on the real server: there the schema finds
// them, after the handwritten validation.
func validatePolicyRules(rules []rbacv1.PolicyRule, namespaced bool) (errs field.ErrorList) {
	var verbs field.ErrorList
	for i, rule := range rules {
		at := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			verbs = append(verbs, field.Required(at.Child("verbs"), ""))
		}
		if len(rule.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(rule.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return append(errs, verbs...)
}

func validateRoleRef(ref rbacv1.RoleRef, kinds ...string) (errs field.ErrorList) {
	at := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	supported := false
	for _, kind := range kinds {
		supported = supported || ref.Kind == kind
	}
	if !supported {
		errs = append(errs, field.NotSupported(at.Child("kind"), ref.Kind, kinds))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	return errs
}

func validateRoleRefUpdate(obj, live rbacv1.RoleRef) field.ErrorList {
	if obj == live {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), obj, "field is immutable")}
}
