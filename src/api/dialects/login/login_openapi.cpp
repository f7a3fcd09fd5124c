#include "api/dialects/literal.hpp"
#include "api/dialects/login/login.hpp"

namespace comfyd::api::login {

json::object operation_login() {
    return literal(R"json({
        "operationId": "logIn",
        "tags": ["login"],
        "summary": "A session for a browser, by an API key",
        "description": "Sets a cookie. For pages of this server alone: Sec-Fetch-Site must be same-origin or none, or else Origin the public address. A form is answered with a redirect to 'next', JSON with the session.",
        "requestBody": {"required": true, "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/LoginForm"}},
            "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/LoginForm"}}
        }},
        "responses": {
            "200": {"description": "The session.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OwnSession"}}}},
            "303": {"description": "To where the form said."},
            "409": {"description": "This server asks nobody who they are.", "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
                "text/html": {"schema": {"type": "string"}}
            }},
            "default": {"description": "What went wrong; a form is shown the page again.", "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
                "text/html": {"schema": {"type": "string"}}
            }}
        }
    })json");
}

json::object operation_logout() {
    return literal(R"json({
        "operationId": "logOut",
        "tags": ["login"],
        "summary": "Ends the session of the cookie",
        "description": "Needs the header X-CSRF-Token, or csrf_token in a form. Where the login was a provider's, the page goes to end_session_url to be logged out there as well.",
        "responses": {"200": {
            "description": "It has ended.",
            "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["end_session_url"],
                "properties": {"end_session_url": {"type": "string", "nullable": true}}
            }}}
        }}
    })json");
}

json::object operation_session() {
    return literal(R"json({
        "operationId": "getOwnSession",
        "tags": ["login"],
        "summary": "Whose session the cookie is, and the token for what changes something",
        "responses": {"200": {
            "description": "The session.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OwnSession"}}}
        }}
    })json");
}

json::object operation_list() {
    return literal(R"json({
        "operationId": "listOwnSessions",
        "tags": ["login"],
        "summary": "The sessions of the caller's own key or person",
        "responses": {"200": {
            "description": "At most 100.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/SessionList"}}}
        }}
    })json");
}

json::object operation_end() {
    return literal(R"json({
        "operationId": "endOwnSession",
        "tags": ["login"],
        "summary": "Ends a session of one's own",
        "responses": {"204": {"description": "It has ended."}, "404": {"description": "There is none of this id."}}
    })json");
}

json::object operation_list_all() {
    return literal(R"json({
        "operationId": "listSessions",
        "tags": ["identity"],
        "summary": "The sessions of all",
        "parameters": [
            {"name": "tenant", "in": "query", "schema": {"type": "string"}},
            {"name": "cursor", "in": "query", "schema": {"type": "string"}},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000}}
        ],
        "responses": {"200": {
            "description": "By their ids.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/SessionList"}}}
        }}
    })json");
}

json::object operation_end_any() {
    return literal(R"json({
        "operationId": "endSession",
        "tags": ["identity"],
        "summary": "Ends a session",
        "responses": {"204": {"description": "It has ended."}, "404": {"description": "There is none of this id."}}
    })json");
}

json::object schemas() {
    return literal(R"json({
        "LoginForm": {
            "type": "object",
            "required": ["key"],
            "properties": {
                "key": {"type": "string"},
                "next": {"type": "string", "description": "A path of this server."}}
        },
        "Session": {
            "type": "object",
            "required": ["id", "tenant", "name", "by", "began_at", "used_at", "ends_at", "address", "agent"],
            "properties": {
                "id": {"type": "string"},
                "tenant": {"type": "string"},
                "name": {"type": "string", "description": "Of the key, or whom the provider calls so (sub)."},
                "by": {"type": "string", "enum": ["key", "oidc"]},
                "began_at": {"type": "string", "format": "date-time"},
                "used_at": {"type": "string", "format": "date-time", "description": "To the minute."},
                "ends_at": {"type": "string", "format": "date-time", "description": "If it is not used until then."},
                "address": {"type": "string", "description": "Where the login came from."},
                "agent": {"type": "string"}}
        },
        "OwnSession": {
            "allOf": [{"$ref": "#/components/schemas/Session"}, {
                "type": "object",
                "required": ["scopes", "csrf_token"],
                "properties": {
                    "scopes": {"type": "array", "items": {"type": "string"}},
                    "csrf_token": {"type": "string", "description": "For the header X-CSRF-Token."}}
            }]
        },
        "SessionList": {
            "type": "object",
            "required": ["sessions"],
            "properties": {
                "sessions": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}},
                "next_cursor": {"type": "string", "nullable": true, "description": "Where there are pages."}}
        }
    })json");
}

}  // namespace comfyd::api::login
