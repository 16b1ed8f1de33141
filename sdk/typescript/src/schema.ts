/**
 * JSON Schema as far as the type of a handler's arguments is inferred from it, and the check that makes that type true
 * at run time. Keywords beyond these are shown to callers and neither inferred nor checked.
 */

import { InvalidArguments } from "./errors.js";

export type TypeName = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

export interface JsonSchema {
  readonly type?: TypeName | readonly TypeName[];
  readonly description?: string;
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly [keyword: string]: unknown;
}

/** The schema of a tool's arguments. */
export interface ObjectSchema extends JsonSchema {
  readonly type: "object";
}

/** The type of the values that a schema describes. */
export type FromSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly anyOf: readonly (infer Member)[] }
      ? FromSchema<Member>
      : S extends { readonly oneOf: readonly (infer Member)[] }
        ? FromSchema<Member>
        : S extends { readonly type: infer Name }
          ? OfType<Name extends readonly (infer Each)[] ? Each : Name, S>
          : unknown;

type OfType<Name, S> = Name extends "string"
  ? string
  : Name extends "number" | "integer"
    ? number
    : Name extends "boolean"
      ? boolean
      : Name extends "null"
        ? null
        : Name extends "array"
          ? (S extends { readonly items: infer Item } ? FromSchema<Item> : unknown)[]
          : Name extends "object"
            ? OfObject<S>
            : unknown;

type OfObject<S> = S extends { readonly properties: infer Properties }
  ? Flat<
      { -readonly [Key in keyof Properties as Key extends Required<S> ? Key : never]: FromSchema<Properties[Key]> } & {
        -readonly [Key in keyof Properties as Key extends Required<S> ? never : Key]?: FromSchema<Properties[Key]>;
      }
    >
  : S extends { readonly additionalProperties: infer Value extends JsonSchema }
    ? Record<string, FromSchema<Value>>
    : Record<string, unknown>;

type Required<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;
type Flat<T> = { [Key in keyof T]: T[Key] };

/** Throws `InvalidArguments` when the value is not what the schema describes. */
export function check(schema: JsonSchema, value: unknown, path = ""): void {
  const where = path || "the arguments";
  if (schema.type !== undefined) {
    const names = typeof schema.type === "string" ? [schema.type] : schema.type;
    if (!names.some((name) => isOf(name, value))) {
      throw new InvalidArguments(`${where}: expected ${names.join(" or ")}, got ${kindOf(value)}`);
    }
  }
  const choices = "const" in schema ? [schema.const] : schema.enum;
  if (choices && !choices.some((choice) => isSame(choice, value))) {
    throw new InvalidArguments(`${where}: expected one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}`);
  }
  const members = schema.anyOf ?? schema.oneOf;
  if (members && !members.some((member) => fits(member, value, path))) {
    throw new InvalidArguments(`${where}: fits none of the permitted forms`);
  }
  if (Array.isArray(value) && schema.items) {
    for (const [at, item] of value.entries()) check(schema.items, item, `${path}[${at}]`);
  }
  if (kindOf(value) === "object") checkMembers(schema, value as Record<string, unknown>, path);
}

function checkMembers(schema: JsonSchema, value: Record<string, unknown>, path: string): void {
  const at = (name: string) => (path ? `${path}.${name}` : name);
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) throw new InvalidArguments(`${at(name)}: is missing`);
  }
  for (const [name, inner] of Object.entries(value)) {
    const known = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    const rest = schema.additionalProperties;
    if (known) check(known, inner, at(name));
    else if (rest === false) throw new InvalidArguments(`${at(name)}: there is no such argument`);
    else if (typeof rest === "object") check(rest, inner, at(name));
  }
}

function fits(schema: JsonSchema, value: unknown, path: string): boolean {
  try {
    check(schema, value, path);
    return true;
  } catch (error) {
    if (error instanceof InvalidArguments) return false;
    throw error;
  }
}

function isOf(name: TypeName, value: unknown): boolean {
  return name === "integer" ? Number.isInteger(value) : kindOf(value) === name;
}

/** The JSON name of a value's kind; never the value, which may be a secret. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === "object" && JSON.stringify(a) === JSON.stringify(b));
}
