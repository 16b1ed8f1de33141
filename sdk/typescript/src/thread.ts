/** The entry of the thread that speaks to the server: passes messages between the conversation and the handlers. */

import { type MessagePort, parentPort, workerData } from "node:worker_threads";

import { Conversation, Refused } from "./conversation.js";
import type { Settings, ToHandlers, ToThread } from "./messages.js";

async function main(port: MessagePort): Promise<void> {
  const tell = (message: ToHandlers) => port.postMessage(message);
  const conversation = new Conversation(workerData as Settings, tell);
  port.on("message", (message: ToThread) => {
    if (message.kind === "finished") {
      for (const { leaseToken, outcome } of message.calls) conversation.finished(leaseToken, outcome);
    } else if (message.kind === "step") {
      void conversation.step(message.id, message.leaseToken, message.name, message.text).catch(() => undefined);
    } else if (message.kind === "drain") {
      conversation.drain();
    } else {
      conversation.news(message.leaseToken, message.kind, message.text);
    }
  });
  try {
    await conversation.run();
    tell({ kind: "end", refusal: null });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell({ kind: "end", refusal: error.message });
  } finally {
    port.close();
  }
}

if (parentPort) await main(parentPort);
